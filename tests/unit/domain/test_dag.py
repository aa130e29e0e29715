"""Which nodes start, wait or are skipped: the table, and the incremental advance held against a slow, obviously right model."""

import itertools
from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ksana.domain.dag import (
    RUN,
    Advance,
    Graph,
    NodeNow,
    Run,
    Skip,
    Standing,
    Tally,
    TriggerRule,
    decide,
    evaluate,
    stopped_before,
    tally_of,
    undone_by,
)
from ksana.domain.errors import InvalidDag
from ksana.domain.states import ExecutionStatus

S, F, K = Standing.SUCCEEDED, Standing.FAILED, Standing.SKIPPED
OPEN = Standing.ACTIVE
R = TriggerRule


@pytest.mark.parametrize(
    ("rule", "dependencies", "verdict"),
    [
        (R.ALL_SUCCESS, [S, S], "run"),
        (R.ALL_SUCCESS, [S, OPEN], "wait"),
        (R.ALL_SUCCESS, [F, OPEN], "wait"),  # the reason must not hang on who ends first
        (R.ALL_SUCCESS, [F, S], "upstream_failed"),
        (R.ALL_SUCCESS, [F, K], "upstream_failed"),
        (R.ALL_SUCCESS, [K, S], "upstream_skipped"),
        (R.ALL_SUCCESS, [], "run"),
        (R.ALL_DONE, [F, K, S], "run"),
        (R.ALL_DONE, [F, OPEN], "wait"),
        (R.ALL_FAILED, [F, F], "run"),
        (R.ALL_FAILED, [F, OPEN], "wait"),
        (R.ALL_FAILED, [F, S], "not_all_failed"),
        (R.ALL_FAILED, [F, K], "not_all_failed"),
        (R.ONE_SUCCESS, [S, OPEN], "run"),
        (R.ONE_SUCCESS, [F, OPEN], "wait"),
        (R.ONE_SUCCESS, [F, K], "upstream_failed"),
        (R.ONE_SUCCESS, [K, K], "upstream_skipped"),
        (R.ONE_FAILED, [F, OPEN], "run"),
        (R.ONE_FAILED, [S, OPEN], "wait"),
        (R.ONE_FAILED, [S, K], "none_failed"),
        (R.NONE_FAILED, [S, K], "run"),
        (R.NONE_FAILED, [K, K], "run"),
        (R.NONE_FAILED, [S, OPEN], "wait"),
        (R.NONE_FAILED, [S, F], "upstream_failed"),
    ],
)
def test_the_table_of_trigger_rules(rule: TriggerRule, dependencies: list[Standing], verdict: str) -> None:
    found = decide(rule, tally_of(dependencies))
    told = found.reason if isinstance(found, Skip) else "run" if found == RUN else "wait"
    assert told == verdict


def test_a_skip_because_of_a_failure_counts_as_one_further_down() -> None:
    graph = Graph.of({"a": (), "b": ("a",), "c": ("b",), "d": ("b",)}, {"c": R.ONE_FAILED, "d": R.NONE_FAILED})
    found = evaluate(graph, {"a": F, "b": Standing.PENDING, "c": Standing.PENDING, "d": Standing.PENDING})
    assert found.ready == ["c"]
    assert {node: skip.reason for node, skip in found.skipped.items()} == {
        "b": "upstream_failed",
        "d": "upstream_failed",
    }


def test_a_cycle_is_named_by_its_path() -> None:
    with pytest.raises(InvalidDag) as told:
        Graph.of({"a": (), "b": ("a", "d"), "c": ("b",), "d": ("c",)}, {})
    cycle = told.value.details["cycle"]
    assert cycle[0] == cycle[-1]
    assert set(cycle) == {"b", "c", "d"}
    # Each step goes from a node to one that depends on it.
    needed = {"b": {"a", "d"}, "c": {"b"}, "d": {"c"}}
    assert all(before in needed[after] for before, after in itertools.pairwise(cycle))


def test_a_node_that_depends_on_itself_is_a_cycle() -> None:
    with pytest.raises(InvalidDag, match="a → a"):
        Graph.of({"a": ("a",)}, {})


def test_ten_thousand_nodes_in_a_row_do_not_recurse() -> None:
    names = [f"n{number}" for number in range(10_000)]
    graph = Graph.of({name: (names[place - 1],) if place else () for place, name in enumerate(names)}, {})
    reached = Advance(graph, {"n0": F})
    reached.learn(dict.fromkeys(names[1:], Tally(1)))
    assert len(reached.skipped) == 9_999
    assert not reached.started


# Properties -------------------------------------------------------------------------------------------------------------


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    size = draw(st.integers(1, 12))
    dependencies: dict[str, tuple[str, ...]] = {}
    rules: dict[str, TriggerRule] = {}
    for place in range(size):
        earlier = [f"n{number}" for number in range(place)]
        needed = draw(st.lists(st.sampled_from(earlier), unique=True, max_size=4)) if earlier else []
        dependencies[f"n{place}"] = tuple(needed)
        rules[f"n{place}"] = draw(st.sampled_from(list(TriggerRule))) if needed else TriggerRule.ALL_SUCCESS
    return Graph.of(dependencies, rules)


ENDS = st.sampled_from([S, F, K])


class Model:
    """The slow one: after every end, everything is decided anew, from the whole graph."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.standings: dict[str, Standing] = dict.fromkeys(graph.dependencies, Standing.PENDING)
        self.ready: set[str] = set()
        self.reasons: dict[str, str] = {}
        self._decide()

    def end(self, node: str, standing: Standing) -> None:
        self.ready.discard(node)
        self.standings[node] = standing
        self._decide()

    def _decide(self) -> None:
        changed = True
        while changed:
            changed = False
            for node, needed in self.graph.dependencies.items():
                if self.standings[node] is not Standing.PENDING:
                    continue
                verdict = _obviously(self.graph.rules[node], [self.standings[each] for each in needed])
                if verdict == "run":
                    self.standings[node] = Standing.ACTIVE
                    self.ready.add(node)
                elif verdict != "wait":
                    self.standings[node] = F if verdict == "upstream_failed" else K
                    self.reasons[node] = verdict
                changed = changed or verdict != "wait"


def _obviously(rule: TriggerRule, before: list[Standing]) -> str:
    """The rules in plain words, one after the other."""
    done = all(each.ended for each in before)
    if rule is R.ONE_SUCCESS and S in before:
        return "run"
    if rule is R.ONE_FAILED and F in before:
        return "run"
    if not done:
        return "wait"
    if rule is R.ALL_DONE:
        return "run"
    if rule is R.ALL_SUCCESS:
        if all(each is S for each in before):
            return "run"
        return "upstream_failed" if F in before else "upstream_skipped"
    if rule is R.ALL_FAILED:
        return "run" if all(each is F for each in before) else "not_all_failed"
    if rule is R.ONE_SUCCESS:
        return "upstream_failed" if F in before else "upstream_skipped"
    if rule is R.ONE_FAILED:
        return "none_failed"
    return "upstream_failed" if F in before else "run"


class Incremental:
    """What the store does: tallies kept with the nodes, and only what an end reaches looked at; several ends at once."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.tallies = {node: Tally(len(needed)) for node, needed in graph.dependencies.items()}
        self.pending = {node for node, needed in graph.dependencies.items() if needed}
        self.ready = {node for node, needed in graph.dependencies.items() if not needed}
        self.reasons: dict[str, str] = {}

    def end(self, ends: Mapping[str, Standing], steps: int) -> None:
        self.ready -= ends.keys()
        reached = Advance(self.graph, ends)
        while reached.wanted:
            wanted = reached.wanted if steps > 0 else reached.beyond()
            steps -= 1
            reached.learn({node: self.tallies[node] for node in wanted if node in self.pending})
        self.tallies |= reached.tallies
        self.pending -= reached.started | reached.skipped.keys()
        self.ready |= reached.started
        self.reasons |= {node: skip.reason for node, skip in reached.skipped.items()}


@settings(max_examples=400, deadline=None)
@given(graph=graphs(), data=st.data())
def test_advancing_step_by_step_is_the_same_as_deciding_everything_anew(graph: Graph, data: st.DataObject) -> None:
    model, kept = Model(graph), Incremental(graph)
    assert kept.ready == model.ready
    while model.ready:
        batch = data.draw(st.lists(st.sampled_from(sorted(model.ready)), unique=True, min_size=1))
        ends = {node: data.draw(ENDS) for node in batch}
        for node, standing in ends.items():
            model.end(node, standing)
        kept.end(ends, data.draw(st.integers(0, 3)))
        assert kept.ready == model.ready
        assert kept.reasons == model.reasons
        # And from nothing but the standings, the same again.
        anew = evaluate(graph, model.standings)
        assert not anew.ready
        assert not anew.skipped
        assert {node: tally for node, tally in kept.tallies.items() if node in kept.pending} == anew.tallies
    assert all(standing.ended for standing in model.standings.values())


@settings(max_examples=300, deadline=None)
@given(graph=graphs(), data=st.data())
def test_the_order_of_ends_changes_nothing(graph: Graph, data: st.DataObject) -> None:
    fates = {node: data.draw(ENDS) for node in graph.dependencies}

    def lived() -> tuple[dict[str, Standing], dict[str, str]]:
        model = Model(graph)
        while model.ready:
            node = data.draw(st.sampled_from(sorted(model.ready)))
            model.end(node, fates[node])
        return model.standings, model.reasons

    assert lived() == lived()


@settings(max_examples=300, deadline=None)
@given(graph=graphs(), data=st.data())
def test_what_is_done_again_undoes_exactly_the_skips_that_hung_on_it(graph: Graph, data: st.DataObject) -> None:
    """A run that ended, a node of it done again with another result: as if it had ended so at first, but for what ran."""
    model = Model(graph)
    while model.ready:
        model.end(min(model.ready), data.draw(ENDS))
    nodes = {node: _now(standing, model.reasons.get(node)) for node, standing in model.standings.items()}
    failed = sorted(node for node, now in nodes.items() if now.status is ExecutionStatus.FAILED)
    if not failed:
        return
    again = data.draw(st.sampled_from(failed))
    undone = undone_by(graph, nodes, [again])
    assert all(nodes[node].status is ExecutionStatus.SKIPPED for node in undone)
    standings = {node: now.standing for node, now in nodes.items()}
    standings |= dict.fromkeys(undone, Standing.PENDING) | {again: S}
    found = evaluate(graph, standings)
    # Nothing that ran is touched, and whatever was undone is decided: it runs, waits for one that runs, or is skipped.
    decided = set(found.ready) | found.skipped.keys() | found.tallies.keys()
    assert decided == set(undone)
    for node in found.ready:
        tally = tally_of(_after(standings, found.skipped)[each] for each in graph.dependencies[node])
        assert isinstance(decide(graph.rules[node], tally), Run)


def _after(standings: Mapping[str, Standing], skipped: Mapping[str, Skip]) -> dict[str, Standing]:
    return {**standings, **{node: skip.standing for node, skip in skipped.items()}}


def _now(standing: Standing, reason: str | None) -> NodeNow:
    if reason is not None:
        return NodeNow(ExecutionStatus.SKIPPED, reason)
    status = {S: ExecutionStatus.SUCCESS, F: ExecutionStatus.FAILED, K: ExecutionStatus.SKIPPED}[standing]
    return NodeNow(status, "condition_false" if standing is K else None, attempt=1)


def test_a_stopped_node_needs_the_stopped_nodes_before_it() -> None:
    graph = Graph.of({"a": (), "b": ("a",), "c": ("b",), "x": ()}, {})
    stopped = NodeNow(ExecutionStatus.STOPPED)
    nodes = {"a": NodeNow(ExecutionStatus.SUCCESS, attempt=1), "b": stopped, "c": stopped, "x": stopped}
    assert stopped_before(graph, nodes, ["c"]) == {"b"}
