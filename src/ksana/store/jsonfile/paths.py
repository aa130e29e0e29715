"""Which file a URL names, and the names beside it."""

from pathlib import Path

from ksana.domain.errors import InvalidSetting

FILE_NAME = "jobs.json"
_SCHEME = "json://"


def json_path(url: str) -> Path:
    """The file of `json:///absolute/path` or `json://relative/path`, links followed; `jobs.json` in it unless it names a
    `.json` file. InvalidSetting if it names nothing."""
    named = url.removeprefix(_SCHEME)
    if not url.startswith(_SCHEME) or not named or any(mark in named for mark in "\0?#"):
        raise InvalidSetting(
            "database.url", "must name a file: json:///absolute/jobs.json or json://relative/jobs.json"
        )
    path = Path(named).resolve()
    return path / FILE_NAME if path.is_dir() or path.suffix != ".json" else path


def temporary(path: Path) -> Path:
    """Where its next contents are written. One name, so that what a crash leaves is found."""
    return path.with_name(path.name + ".tmp")


def scratch_folder(path: Path) -> Path:
    """Where the private database is while the file is open."""
    return path.with_name(f".{path.name}.scratch")


def set_aside(path: Path) -> Path:
    """The first of `jobs.bad.json`, `jobs.bad.1.json`, … that is not there yet."""
    number = 0
    while True:
        middle = ".bad" if number == 0 else f".bad.{number}"
        free = path.with_name(f"{path.stem}{middle}{path.suffix}")
        if not free.exists() and not free.is_symlink():
            return free
        number += 1
