"""The reference page, from the table: `python -m ksana.settings.page > docs/reference/settings.md`."""

import sys
from collections.abc import Iterator

from ksana.settings.declare import Setting, sections
from ksana.settings.table import Settings, settings_table
from ksana.settings.values import shown

_OPENING = """\
# Settings

<!-- Written by `python -m ksana.settings.page`; a test holds it to src/ksana/settings/table.py. -->

A setting is read from the first of these that has it:

1. a **flag** of the command line (`--port 7200`);
2. the **environment** (`PORT=7200`); an empty variable counts as absent;
3. the **file** named with `--config FILE` or `KSANA_CONFIG`: YAML, at most 1 MB, without aliases;
4. the **default**.

`ksana config show` prints every value and where it came from, passwords masked. A value that cannot be used stops
the program with exit code 2 and one line that says which, where, and what to write instead; so does a name in the
file, or a flag, that no setting has. A `KSANA_…` variable that no setting has is only noted in the log.

The sections `redis` and `executor.persistence` say where the state of plans is shown: [runtime state](../operate/runtime-state.md).

Durations are written `10s`, `2h30m`, `500ms`, or as a number of seconds. In the file, `-` and `_` are the same
in names, and `server.port: 7200` is the same as `port: 7200` below `server:`.

```yaml
server:
  port: 7200
database:
  url: postgresql://ksana:secret@db.internal/ksana
executor:
  worker_pool_size: 64
logging:
  level: warning
```
"""


def page() -> str:
    """The whole page."""
    return "\n".join([_OPENING, *_sections()])


def _sections() -> Iterator[str]:
    for path, meaning in [("", "Settings outside any section."), *sections(Settings)]:
        own = [row for row in settings_table().values() if row.path.rpartition(".")[0] == path]
        if own:
            yield f"## {f'`{path}`' if path else 'At the top'}\n\n{meaning}\n"
            yield "| setting | default | value | environment | flag |\n| --- | --- | --- | --- | --- |"
            yield from (_line(row) for row in own)
            yield ""
            yield from (_meaning(row) for row in own)
            yield ""


def _line(row: Setting) -> str:
    default = row.default_meaning or f"`{shown(row.default) or ' '}`"
    default = "none" if default == "` `" else default
    names = " or ".join(f"`{name}`" for name in row.env)
    return f"| `{row.path}` | {default} | {row.parser.kind} | {names} | {f'`{row.flag}`' if row.flag else ''} |"


def _meaning(row: Setting) -> str:
    also = f" Also written {', '.join(f'`{name}`' for name in row.also)}." if row.also else ""
    return f"- `{row.path}`: {row.meaning}{also}"


if __name__ == "__main__":
    sys.stdout.write(page())
