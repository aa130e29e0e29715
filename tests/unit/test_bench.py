"""The benchmarks tell what they measured. That they measure it is seen with the smallest sizes, and no figure is judged."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from bench.page import BEGIN, END, PAGE, figures, written
from bench.processes import cpu_seconds, resident_bytes
from bench.report import Budget, Line, at_least, at_most, missing, read_json, table, write_json
from bench.spread import Spread, percentile

ROOT = Path(__file__).parents[2]
on_linux = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


def test_several_measurements_are_told_as_their_median_between_the_least_and_the_most() -> None:
    assert Spread((5_300, 5_100, 4_980)).told("runs/s") == "5,100 runs/s (4,980 to 5,300)"
    assert Spread((0.702,)).told("x") == "0.70 x"


def test_a_ratio_is_that_of_measurements_that_were_made_beside_each_other() -> None:
    assert Spread((1.0, 6.0)).over(Spread((2.0, 3.0))).values == (0.5, 2.0)


def test_a_percentile_is_one_of_the_values() -> None:
    assert percentile(range(1, 101), 0.99) == 100
    assert percentile([3.0], 0.5) == 3.0
    assert percentile([], 0.5) == 0.0


@pytest.mark.parametrize(("budget", "kept"), [(at_most(2), True), (at_most(1), False), (at_least(1), True)])
def test_the_median_keeps_a_budget_or_misses_it(budget: Budget, kept: bool) -> None:
    line = Line.of("what", Spread((1.0, 1.5, 9.0)), "x", budget)
    assert line.kept is kept
    assert ("kept" if kept else "MISSED") in table([line])


def test_figures_are_the_same_when_they_are_read_again(tmp_path: Path) -> None:
    lines = [Line.of("rate", Spread((1.0, 2.0)), "runs/s", at_least(1)), missing("rate elsewhere", "it is not there")]
    write_json(tmp_path / "results.json", lines)
    assert read_json(tmp_path / "results.json") == lines


def test_the_page_has_a_place_for_the_figures() -> None:
    page = written(PAGE.read_text(), figures([Line("what", "1 s", "", None, part="start")], "Somewhere."))
    assert page.count(BEGIN) == page.count(END) == 1
    assert "| what | 1 s |  |  |" in page


def test_parts_of_the_page_that_were_not_measured_again_stay() -> None:
    first = figures([Line("a", "1 s", "", None, part="start"), Line("b", "2 s", "", None, part="idle")], "Then.")
    both = figures([Line("a", "3 s", "", None, part="start"), Line("c", "4 s", "", None, part="api")], "Now.", first)
    assert [line for line in both.splitlines() if line[:3] in {"###", "| a", "| b", "| c"}] == [
        "### `start`",
        "| a | 3 s |  |  |",
        "### `idle`",
        "| b | 2 s |  |  |",
        "### `api`",
        "| c | 4 s |  |  |",
    ]
    assert "Then." not in both


@on_linux
def test_what_a_process_costs_is_read() -> None:
    assert cpu_seconds([os.getpid()]) > 0
    assert resident_bytes([os.getpid()]) > 1_000_000


def test_the_smallest_benchmark_runs(tmp_path: Path) -> None:
    results = tmp_path / "results.json"
    command = [sys.executable, "-m", "bench", "--quick", "--only", "store", "--json", str(results)]
    ended = subprocess.run(
        [*command, "--plot", str(tmp_path / "results.png")], cwd=ROOT, capture_output=True, text=True, check=False
    )
    (line,) = read_json(results)
    assert ended.returncode in {0, 1}, ended.stderr
    assert line.values, line.figure
    assert line.what in ended.stdout
    assert json.loads(results.read_text())["cores"]
