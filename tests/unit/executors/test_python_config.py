"""Which functions there are, and how the parameters of a job are checked when it is saved."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.unit.executors.processes import given

from ksana import functions
from ksana.domain.errors import InvalidInput, InvalidSetting
from ksana.domain.outcome import Failed
from ksana.executors.python import PythonExecutor
from ksana.executors.python_functions import PythonOptions, python_options
from ksana.functions import Alone, Final, NodeContext, function
from ksana.settings import load

SAMPLES = "tests.unit.executors.python_samples"


@pytest.fixture
def python() -> PythonExecutor:
    return PythonExecutor(PythonOptions(modules=(SAMPLES,)))


@pytest.fixture
def nothing_registered(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(functions, "_REGISTERED", {})
    path = list(sys.path)
    yield
    sys.path[:] = path


def test_parameters_are_checked_against_the_signature(python: PythonExecutor) -> None:
    config = {"function": "typed", "params": {"day": "2026-03-01", "window": {"first": 1, "last": 2}, "names": ["a"]}}
    assert python.check(config) == config
    assert python.check({"function": "told"}) == {"function": "told", "params": {}}
    assert python.check({"function": "anything", "params": {"x": [1, {"y": None}]}})["params"] == {
        "x": [1, {"y": None}]
    }


@pytest.mark.parametrize(
    ("config", "field", "reason"),
    [
        ({}, "function", "no function of that name; there are: add, "),
        ({"function": "os.system"}, "function", "no function of that name"),
        ({"function": ["add"]}, "function", "no function of that name"),
        ({"function": "add", "params": []}, "params", "must be an object"),
        ({"function": "add"}, "params.left", "must be given"),
        ({"function": "add", "params": {"left": "x"}}, "params.left", "Input should be a valid integer"),
        ({"function": "add", "params": {"left": 1, "up": 2}}, "params.up", "no such parameter; there are: left, right"),
        ({"function": "told", "params": {"context": {}}}, "params.context", "no such parameter; there are: none"),
        (
            {"function": "typed", "params": {"day": "2026-03-01", "window": {"first": 1, "last": "x"}, "names": []}},
            "params.window.last",
            "Input should be a valid integer",
        ),
        ({"function": "add", "params": {"left": "{{ secrets }}"}}, "params.left", "there is no variable 'secrets'"),
        ({"function": "add", "module": "os"}, "module", "not known; there are: function, params"),
    ],
)
def test_what_the_function_does_not_take_is_refused_naming_the_part(
    python: PythonExecutor, config: dict[str, Any], field: str, reason: str
) -> None:
    with pytest.raises(InvalidInput, match=reason) as refused:
        python.check(config)
    assert refused.value.field == field


def test_a_template_is_checked_as_one_and_its_value_when_it_is_known(python: PythonExecutor) -> None:
    config = {"function": "add", "params": {"left": "{{ nodes.load.artifact.rows }}", "right": 2}}
    assert python.check(config) == config


def test_too_many_templates_and_too_deep_parameters_are_refused(python: PythonExecutor) -> None:
    with pytest.raises(InvalidInput, match=r"params\.x: has more than 200 strings with templates"):
        python.check({"function": "anything", "params": {"x": ["{{ attempt }}"] * 201}})
    deep: Any = []
    for _ in range(70):
        deep = [deep]
    with pytest.raises(InvalidInput, match=r"params.x: is nested deeper than 64 levels"):
        python.check({"function": "anything", "params": {"x": deep}})


@pytest.mark.usefixtures("nothing_registered")
def test_without_modules_there_are_no_functions() -> None:
    with pytest.raises(InvalidInput, match=r"there are: none; the setting executor.python_modules names their modules"):
        PythonExecutor().check({"function": "add"})


@pytest.mark.usefixtures("nothing_registered")
@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("import no_such_module", "broken_{n} cannot be imported: ModuleNotFoundError"),
        ("1 / 0", "broken_{n} cannot be imported: ZeroDivisionError"),
        ("@function('f')\ndef f(a, /): ...", "function f: parameter a cannot be given by its name"),
        ("@function('f')\ndef f(*a): ...", "function f: parameter a cannot be given by its name"),
        ("class C: ...\n@function('f')\ndef f(a: C): ...", "function f: no JSON can be made a a"),
        ("@function('f')\ndef f(a: 'Nowhere'): ...", "function f: name 'Nowhere' is not defined"),
        ("@function('f')\ndef f(context: LightContext): ...", "function f: its context must be a NodeContext"),
        ("@function('f', light=True)\nasync def f(c: NodeContext): ...", "function f: its c must be a LightContext"),
        ("@function('f', light=True)\ndef f(): ...", "f: only an async function can be light"),
        ("@function('f f')\ndef f(): ...", "a function's name must be"),
        ("@function('f')\ndef f(): ...\n@function('f')\ndef g(): ...", "two functions are called 'f'"),
    ],
)
def test_a_module_that_cannot_be_used_is_refused_at_the_start(
    tmp_path: Path, code: str, reason: str, request: pytest.FixtureRequest
) -> None:
    name = f"broken_{abs(hash(request.node.name))}"
    (tmp_path / f"{name}.py").write_text(
        f"from ksana.functions import *\nfrom ksana.functions import function\n{code}\n"
    )
    with pytest.raises(InvalidSetting) as refused:
        PythonExecutor(PythonOptions(modules=(name,), path=(str(tmp_path),)))
    assert reason.replace("broken_{n}", name) in refused.value.message
    assert refused.value.field == "executor.python_modules"


@pytest.mark.usefixtures("nothing_registered")
async def test_a_module_that_only_its_process_cannot_import_fails_the_attempt(tmp_path: Path) -> None:
    name = "gone_by_then"
    (tmp_path / f"{name}.py").write_text("from ksana.functions import function\n@function('f')\ndef f(): ...\n")
    python = PythonExecutor(PythonOptions(modules=(name,), path=(str(tmp_path),)))
    (tmp_path / f"{name}.py").unlink()
    outcome = await python.execute(given({"function": "f"}))
    assert isinstance(outcome, Failed)
    assert outcome.error == f"the functions could not be loaded: ModuleNotFoundError: No module named '{name}'"
    assert outcome.retryable
    await python.close()


def test_the_settings_become_options() -> None:
    variables = {"MODULES": "jobs.nightly, jobs.hourly", "PATH": "/srv/jobs", "IDLE": "2"}
    environ = {f"KSANA_EXECUTOR_PYTHON_{name}": value for name, value in variables.items()}
    options = python_options(load(environ={**environ, "KSANA_EXECUTOR_CHILD_ENV": "AWS_REGION"}).settings)
    assert options == PythonOptions(("jobs.nightly", "jobs.hourly"), ("/srv/jobs",), ("AWS_REGION",), 2)
    assert python_options(load().settings) == PythonOptions()


@pytest.mark.usefixtures("nothing_registered")
def test_a_function_is_still_a_function_for_its_own_tests(capsys: pytest.CaptureFixture[str]) -> None:
    @function("count")
    def count(context: NodeContext, upto: int) -> int:
        context.log("counting")
        context.save_checkpoint(upto)
        if context.cancelled:
            raise Final("stopped")
        return upto + int(context.params["more"])

    link = Alone()
    assert count(NodeContext(params={"more": 1}, link=link), 4) == 5
    assert link.saved == {"checkpoint": 4}
    assert capsys.readouterr().out == "counting\n"
    link.asked_to_stop = True
    with pytest.raises(Final):
        count(NodeContext(link=link), 4)
