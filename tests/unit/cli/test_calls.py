"""The table of commands: what it says can be typed, and the page that people read says the same."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from ksana.cli.app import app
from ksana.cli.client.calls import CALLS, GROUPS, Call
from ksana.cli.client.page import PAGE, written
from ksana.cli.client.server import VARIABLE, path_of
from ksana.domain.errors import InvalidInput
from ksana.settings import load

ROOT = Path(__file__).parents[3]
_OPTIONAL = re.compile(r"\[([^\]]+)\]")


def typed(words: str) -> list[str]:
    """A form with something in place of what it names."""
    return ["3" if word == "N" else word for word in words.split() if word != "…"]


def ways_to_type(call: Call) -> Iterator[list[str]]:
    """With nothing that may be left out, and with each of it."""
    needed = _OPTIONAL.sub("", call.form)
    yield typed(needed)
    for more in _OPTIONAL.findall(call.form):
        yield typed(f"{needed} {more}")


@pytest.mark.parametrize("key", CALLS)
def test_each_form_of_the_table_can_be_typed(key: str) -> None:
    for tokens in ways_to_type(CALLS[key]):
        command, *_ = app.parse_args(tokens, exit_on_error=False, print_error=False)
        assert (command.__module__, command.__name__) == (
            f"ksana.cli.client.{CALLS[key].words[0]}",
            f"{CALLS[key].words[-1].replace('-', '_')}_",
        )


@pytest.mark.parametrize("key", CALLS)
def test_each_id_of_a_path_is_one_of_its_form(key: str) -> None:
    call = CALLS[key]
    named = [word.lower() for word in call.form.split() if word.isupper()]
    if "file" not in named:  # else the file says which it is
        assert set(re.findall(r"{(\w+)}", call.path)) <= set(named)


def test_each_family_has_commands() -> None:
    assert {call.words[0] for call in CALLS.values() if len(call.words) > 1} == set(GROUPS)


def test_the_page_has_the_tables() -> None:
    page = (ROOT / PAGE).read_text()
    assert page == written(page), "run: python -m ksana.cli.client.page"


def test_an_id_is_a_single_segment_of_the_path() -> None:
    assert path_of("runs stop", {"run": "a?b:c ü"}, {}) == "/api/v1/runs/a%3Fb%3Ac%20%C3%BC:stop"


@pytest.mark.parametrize("nothing", ["", ".", "..", "a/nodes/b", "\udcff"])
def test_what_would_make_another_path_is_no_id(nothing: str) -> None:
    with pytest.raises(InvalidInput, match="RUN"):
        path_of("runs stop", {"run": nothing}, {})


def test_the_variable_of_the_client_is_no_misspelt_setting() -> None:
    assert load(environ={VARIABLE: "http://127.0.0.1:7100"}).notes == ()
