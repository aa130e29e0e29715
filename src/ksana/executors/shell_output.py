"""What a child process writes: handed on as it comes, and its end kept."""

import codecs
from typing import Protocol

KEPT_BYTES = 65_536
LINE_LENGTH = 200
STREAMS = {1: "stdout", 2: "stderr"}


class Log(Protocol):
    def __call__(self, text: str, stream: str) -> None: ...


class Tail:
    """The last `limit` bytes of what was added."""

    def __init__(self, limit: int = KEPT_BYTES) -> None:
        self._limit = limit
        self._kept = bytearray()
        self._cut = False

    def add(self, data: bytes) -> None:
        self._kept += data[-self._limit :]
        self._cut = self._cut or len(data) > self._limit
        if len(self._kept) > 2 * self._limit:
            self._trim()

    def text(self) -> str:
        """As UTF-8; half a character at its cut beginning is left out, what is none otherwise becomes U+FFFD."""
        self._trim()
        data = bytes(self._kept)
        if self._cut:
            start = next((at for at, byte in enumerate(data[:4]) if byte & 0xC0 != 0x80), 0)
            data = data[start:]
        return data.decode("utf-8", "replace")

    def _trim(self) -> None:
        if len(self._kept) > self._limit:
            self._cut = True
            del self._kept[: -self._limit]


class Output:
    """The output of one attempt. `log` gets whole characters, as they come."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self.stdout, self.stderr, self.both = Tail(), Tail(), Tail()
        decoder = codecs.getincrementaldecoder("utf-8")
        self._decoders = {fd: decoder("replace") for fd in STREAMS}

    def received(self, fd: int, data: bytes) -> None:
        """A part of one stream has come."""
        (self.stdout if fd == 1 else self.stderr).add(data)
        self.both.add(data)
        self._hand_on(fd, self._decoders[fd].decode(data))

    def finish(self) -> None:
        """Nothing more will come: half a character at the end is handed on as what it is."""
        for fd, decoder in self._decoders.items():
            self._hand_on(fd, decoder.decode(b"", final=True))

    def last_error(self) -> str:
        """The last line on standard error that is not blank, cut; empty if there is none."""
        lines = [line.strip() for line in self.stderr.text().splitlines()]
        last = next((line for line in reversed(lines) if line), "")
        return last if len(last) <= LINE_LENGTH else f"{last[:LINE_LENGTH]}…"

    def _hand_on(self, fd: int, text: str) -> None:
        if text:
            self._log(text, STREAMS[fd])
