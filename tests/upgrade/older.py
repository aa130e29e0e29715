"""The program before this one, from the repository's own history; it runs with the interpreter and the packages of today."""

import io
import shutil
import subprocess
import tarfile
import tempfile
from contextlib import suppress
from pathlib import Path

from tests.process.nursery import ROOT
from tests.servers.base import MissingError

OLDER = "5b4f464860256b349bbe1b42e2b8bd04427aa28f"
"""The last commit of schema 0003, the oldest that this one serves (`migrate.SERVES_FROM`). When a revision is added that does not
serve it any more, this becomes the last commit before that."""
OLDER_SCHEMA = "0003"
KEPT = ROOT / ".pytest_cache" / "older"


def older_source() -> Path:
    """The folder to put on PYTHONPATH. MissingError where the history does not reach back that far, as in a shallow clone."""
    source = KEPT / OLDER / "src"
    if not source.exists():
        _unpack(_archive(), source.parent)
    return source


def _archive() -> bytes:
    missing = MissingError(f"The program of schema {OLDER_SCHEMA}", "git fetch --unshallow", f"commit {OLDER} in git")
    try:
        return subprocess.run(["git", "archive", OLDER, "src"], cwd=ROOT, capture_output=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        raise missing from None


def _unpack(archive: bytes, folder: Path) -> None:
    """Whole or not at all: several processes may do it at once."""
    KEPT.mkdir(parents=True, exist_ok=True)
    begun = Path(tempfile.mkdtemp(dir=KEPT))
    with tarfile.open(fileobj=io.BytesIO(archive)) as files:
        files.extractall(begun, filter="data")
    with suppress(OSError):  # another was first
        begun.rename(folder)
    shutil.rmtree(begun, ignore_errors=True)
