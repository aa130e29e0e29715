"""The flags that commands share. A flag that is a setting takes its help from the table of settings."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from ksana.settings import Loaded, load, settings_table


def setting_flag(flag: str) -> Parameter:
    """The parameter of a setting. Its value stays text: the table's parser reads it, as from any other place."""
    row = next(row for row in settings_table().values() if row.flag == flag)
    return Parameter(name=flag, help=row.meaning)


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class Options:
    """What every command that reads settings takes."""

    config: Annotated[Path | None, Parameter(name="--config", help="Settings file, YAML.")] = None
    database_url: Annotated[str | None, setting_flag("--database-url")] = None
    data_dir: Annotated[str | None, setting_flag("--data-dir")] = None
    log_level: Annotated[str | None, setting_flag("--log-level")] = None

    def load(self, **more: str | None) -> Loaded:
        """The settings; `more` are further flags, by name without dashes. InvalidSetting."""
        flags = {"--database-url": self.database_url, "--data-dir": self.data_dir, "--log-level": self.log_level}
        return load(
            file=self.config, environ=os.environ, flags={**flags, **{f"--{name}": v for name, v in more.items()}}
        )


DEFAULTS = Options()


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class ServeOptions:
    """What an instance of its own takes besides."""

    host: Annotated[str | None, setting_flag("--host")] = None
    port: Annotated[str | None, setting_flag("--port")] = None
    roles: Annotated[str | None, setting_flag("--roles")] = None
    queues: Annotated[str | None, setting_flag("--queues")] = None
    name: Annotated[str | None, setting_flag("--name")] = None


SERVE_DEFAULTS = ServeOptions()
