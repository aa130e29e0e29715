"""The tables of `docs/reference/cli.md`: `python -m ksana.cli.client.page` writes them there. A test holds the page to them."""

from collections.abc import Iterator
from pathlib import Path

from ksana.cli.client.calls import ALONE, CALLS, GROUPS

PAGE = Path("docs/reference/cli.md")
BEGIN = "<!-- Written by `python -m ksana.cli.client.page`: -->\n"
END = "<!-- to here. -->\n"


def tables() -> str:
    """Every command and its request, by family."""
    return "\n".join(_lines()) + "\n"


def written(page: str) -> str:
    """The page with these tables. ValueError if it has no place for them."""
    before, _, rest = page.partition(BEGIN)
    _, found, after = rest.partition(END)
    if not found:
        raise ValueError(f"{PAGE} has no {BEGIN.strip()} … {END.strip()}")
    return f"{before}{BEGIN}{tables()}\n{END}{after}"


def _lines() -> Iterator[str]:
    families = {f"`ksana {family}`": (family,) for family in GROUPS} | {"Others": ALONE}
    for title, words in families.items():
        yield f"\n### {title}\n\n| command | request | what it does |\n| --- | --- | --- |"
        for call in CALLS.values():
            if call.words[0] in words:
                yield f"| `ksana {call.form}` | `{call.method} {call.path}` | {call.meaning} |"


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text()))
