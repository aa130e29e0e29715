"""The executors there are, and plug-ins among them."""

from collections.abc import Mapping
from importlib.metadata import EntryPoint
from typing import Any, ClassVar

import pytest
from structlog.testing import capture_logs

from ksana.domain.errors import InvalidInput
from ksana.domain.outcome import Outcome, Succeeded
from ksana.executors.base import ExecutionContext
from ksana.executors.registry import GROUP, Executors


class Sample:
    type: ClassVar[str] = "sample"

    def __init__(self) -> None:
        self.closed = False

    def check(self, config: Mapping[str, Any]) -> Mapping[str, Any]:
        return {"checked": True, **config}

    async def execute(self, context: ExecutionContext) -> Outcome:
        return Succeeded(context.trace_id)

    async def close(self) -> None:
        self.closed = True


class Stubborn(Sample):
    type: ClassVar[str] = "stubborn"

    async def close(self) -> None:
        raise RuntimeError("no")


class Raising(Sample):
    type: ClassVar[str] = "raising"

    def __init__(self) -> None:
        raise RuntimeError("no")


def plugin(name: str, at: str) -> EntryPoint:
    return EntryPoint(name=name, value=f"{__name__}:{at}", group=GROUP)


def test_an_executor_is_found_by_its_type() -> None:
    sample = Sample()
    executors = Executors([sample], plugins=[])
    assert executors.get("sample") is sample
    assert executors.types() == ["sample"]
    assert executors.check("sample", {"a": 1}) == {"checked": True, "a": 1}


def test_an_unknown_type_is_refused_and_the_known_ones_are_named() -> None:
    executors = Executors([Sample()], plugins=[plugin("extra", "Sample")])
    with pytest.raises(InvalidInput, match="no executor of that type: ftp; there are: extra, sample") as refused:
        executors.check("ftp", {})
    assert refused.value.field == "type"


def test_a_plugin_is_made_once_when_it_is_first_asked_for() -> None:
    executors = Executors([], plugins=[plugin("sample", "Sample"), plugin("sample", "Raising")])
    assert executors.types() == ["sample"]
    assert executors.get("sample") is executors.get("sample")


def test_ksanas_own_executor_comes_before_a_plugin_of_the_same_type() -> None:
    sample = Sample()
    assert Executors([sample], plugins=[plugin("sample", "Raising")]).get("sample") is sample


@pytest.mark.parametrize(
    ("name", "at"),
    [("raising", "Raising"), ("other", "Sample"), ("gone", "Nothing"), ("odd", "plugin"), ("sample", "GROUP")],
)
def test_a_broken_plugin_is_left_out_and_harms_no_other(name: str, at: str) -> None:
    executors = Executors([Sample()], plugins=[plugin(name, at), plugin("stubborn", "Stubborn")])
    if name != "sample":
        with capture_logs() as lines, pytest.raises(InvalidInput, match="there are: sample, stubborn"):
            executors.get(name)
        assert [line["action"] for line in lines] == ["executors.plugin_broken"]
    assert executors.get("sample").type == "sample"
    assert executors.get("stubborn").type == "stubborn"


def test_plugins_that_are_installed_are_looked_for() -> None:
    assert "sample" in Executors([Sample()]).types()


async def test_closing_closes_all_even_if_one_does_not() -> None:
    sample = Sample()
    with capture_logs() as lines:
        await Executors([Stubborn(), sample], plugins=[]).close()
    assert [line["action"] for line in lines] == ["executors.close_failed"]
    assert sample.closed


async def test_what_takes_long_to_load_is_made_when_there_is_time_for_it() -> None:
    made: list[Sample] = []

    def make() -> Sample:
        made.append(Sample())
        return made[-1]

    executors = Executors([], later={"sample": make}, plugins=[])
    assert (executors.types(), made) == (["sample"], [])
    await executors.load()
    await executors.load()
    assert executors.get("sample") is made[0]
    assert len(made) == 1
    await executors.close()
    assert made[0].closed


async def test_what_is_asked_for_before_it_was_loaded_is_made_at_once() -> None:
    executors = Executors([], later={"sample": Sample}, plugins=[plugin("sample", "Sample")])
    found = executors.get("sample")
    await executors.load()
    assert executors.get("sample") is found


async def test_one_that_cannot_be_loaded_is_told_of_and_harms_no_other() -> None:
    def broken() -> Sample:
        raise ImportError("a library is missing")

    executors = Executors([], later={"broken": broken, "sample": Sample}, plugins=[])
    with capture_logs() as lines:
        await executors.load()
    assert [(line["action"], line["type"]) for line in lines] == [("executors.broken", "broken")]
    assert executors.get("sample").type == "sample"
    with pytest.raises(ImportError):
        executors.get("broken")
