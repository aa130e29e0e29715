"""A wall clock that a scenario can move: of one instance, while it runs, by a library that is loaded before all others."""

import shutil
import struct
import subprocess
import sys
import time
from pathlib import Path

from tests.faults.supervisor import Supervisor
from tests.servers.base import MissingError
from tests.servers.hints import how_to_install

SOURCE = Path(__file__).with_name("clock_shim.c")
LIBRARY = "clock_shim.so"
HOUR, DAY = 3_600, 86_400


class WallClock:
    """The offset, in whole seconds, of the instances that it starts; their scenario must be `fresh`. MissingError where there
    is no C compiler, or no way to load a library first."""

    def __init__(self, folder: Path, offset: int = 0) -> None:
        self._file = folder / "clock"
        self._file.write_bytes(bytes(8))
        self.offset = 0
        self._library = _compiled(folder)
        self.jump(offset)

    def start(self, instances: Supervisor) -> None:
        """One more instance, with this clock."""
        instances.start(1, LD_PRELOAD=str(self._library), TEST_CLOCK=str(self._file))

    def now(self) -> float:
        """What such an instance believes."""
        return time.time() + self.offset

    def jump(self, seconds: float) -> None:
        """From here on it is so much later; or earlier. Seen by the instances at once."""
        self.offset += round(seconds)
        with self._file.open("r+b", buffering=0) as file:
            file.write(struct.pack("=q", self.offset))

    def set(self, wall: float) -> None:
        """To that time, to the second."""
        self.jump(wall - self.now())


def _compiled(folder: Path) -> Path:
    compiler = shutil.which("cc") if sys.platform == "linux" else None
    if compiler is None:
        raise MissingError("A C compiler", how_to_install("compiler"), "cc")
    library = folder / LIBRARY
    if not library.exists():
        command = [compiler, "-O2", "-Wall", "-Werror", "-shared", "-fPIC", "-o", str(library), str(SOURCE), "-ldl"]
        made = subprocess.run(command, capture_output=True, text=True, check=False)
        if made.returncode != 0:  # the compiler alone is not enough: it needs the headers of the system
            raise MissingError("A C compiler with libc's headers", how_to_install("compiler"), made.stderr)
    return library
