"""What is written to people: whole characters, and nothing that their terminal would obey."""

import pytest

from ksana.cli.client.showing import write, write_stream
from ksana.cli.ending import tell

TITLE = "\x1b]0;pwned\x07"
RED, PLAIN = "\x1b[31m", "\x1b[0m"
GONE = "\N{REPLACEMENT CHARACTER}"
COLOURED = f"a {RED}rot ü 中{PLAIN}\tb\r\n"


def in_bytes(text: str) -> list[bytes]:
    return [bytes([each]) for each in text.encode()]


def test_a_character_may_come_in_parts(capsys: pytest.CaptureFixture[str]) -> None:
    write_stream(in_bytes(COLOURED + TITLE))
    assert capsys.readouterr().out == COLOURED + TITLE  # a file gets it as it is


def test_half_a_character_at_the_end_is_shown_as_such(capsys: pytest.CaptureFixture[str]) -> None:
    write_stream(["ü".encode()[:1]])
    assert capsys.readouterr().out == GONE


@pytest.mark.parametrize("in_parts", [False, True])
def test_a_terminal_is_told_colours_and_nothing_else(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, in_parts: bool
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    text = f"{COLOURED}{TITLE}\x9b2J\x1b[2J\x1b"
    write_stream(in_bytes(text) if in_parts else [text.encode()])
    assert capsys.readouterr().out == f"{COLOURED}{GONE}]0;pwned{GONE}{GONE}2J{GONE}[2J{GONE}"


def test_neither_a_line_nor_an_error_makes_a_terminal_do_anything(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    write('{"title": "\x9b2J"}')
    tell(f"no job {TITLE}")
    shown = capsys.readouterr()
    assert (shown.out, shown.err) == (f'{{"title": "{GONE}2J"}}\n', f"ksana: no job {GONE}]0;pwned{GONE}\n")
