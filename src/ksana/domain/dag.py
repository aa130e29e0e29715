"""Which nodes of a workflow run may start, must wait or are skipped, once others have ended. Pure, and one table.

A node is decided by its trigger rule and a tally of the nodes it depends on. It may be *run* as soon as nothing that is still
open could change that; it is *skipped* only when nothing is open any more, so that neither the decision nor its reason hangs
on the order in which nodes end. A skip is an end too, and is carried on to those that depend on it.

`Advance` carries the ends of a few nodes as far as they reach and asks for the tallies of only those that it meets: what the
store does at every end. `evaluate` decides all of a run at once, from nothing but the standings: what a person's order needs,
and what the tests hold `Advance` against. docs/design/workflows.md has the page.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from ksana.domain.errors import InvalidDag
from ksana.domain.states import SUCCEEDED, TERMINAL, ExecutionStatus
from ksana.domain.values import immutable


class TriggerRule(StrEnum):
    """On what of its dependencies a node hangs."""

    ALL_SUCCESS = "all_success"
    ALL_DONE = "all_done"
    ALL_FAILED = "all_failed"
    ONE_SUCCESS = "one_success"
    ONE_FAILED = "one_failed"
    NONE_FAILED = "none_failed"


class Standing(StrEnum):
    """What a node is to those that depend on it."""

    PENDING = "pending"  # waits for others: to be decided
    ACTIVE = "active"  # decided to run, not ended
    SUCCEEDED = "succeeded"
    FAILED = "failed"  # it, or something it needed
    SKIPPED = "skipped"  # left out, and nothing had failed

    @property
    def ended(self) -> bool:
        return self not in {Standing.PENDING, Standing.ACTIVE}


@immutable
class Skip:
    """Why a node is left out, and what that is to those that depend on it."""

    reason: str
    standing: Standing


UPSTREAM_FAILED = Skip("upstream_failed", Standing.FAILED)
UPSTREAM_SKIPPED = Skip("upstream_skipped", Standing.SKIPPED)
NOT_ALL_FAILED = Skip("not_all_failed", Standing.SKIPPED)
NONE_FAILED = Skip("none_failed", Standing.SKIPPED)
CONDITION_FALSE = Skip("condition_false", Standing.SKIPPED)
SKIPPED_BY_HAND = Skip("skipped_by_hand", Standing.SKIPPED)

DECIDED_SKIPS = frozenset(
    skip.reason for skip in (UPSTREAM_FAILED, UPSTREAM_SKIPPED, NOT_ALL_FAILED, NONE_FAILED, CONDITION_FALSE)
)
"""Reasons of skips that are decided anew when what they followed from changes."""


@immutable
class Tally:
    """How many of the nodes that one depends on stand how."""

    open: int
    succeeded: int = 0
    failed: int = 0
    skipped: int = 0

    def after(self, standing: Standing) -> "Tally":
        """With one of the open ones ended so."""
        if standing is Standing.SUCCEEDED:
            return Tally(self.open - 1, self.succeeded + 1, self.failed, self.skipped)
        if standing is Standing.FAILED:
            return Tally(self.open - 1, self.succeeded, self.failed + 1, self.skipped)
        return Tally(self.open - 1, self.succeeded, self.failed, self.skipped + 1)


Test = Callable[[Tally], bool]


@immutable
class _Rule:
    """`runs` may be asked at any time and never becomes false again; `skips` are tried in order, once nothing is open."""

    runs: Test
    skips: tuple[tuple[Test, Skip], ...] = ()


def _always(_: Tally) -> bool:
    return True


def _some_failed(tally: Tally) -> bool:
    return tally.failed > 0


_RULES: Mapping[TriggerRule, _Rule] = {
    TriggerRule.ALL_SUCCESS: _Rule(
        lambda t: t.open == t.failed == t.skipped == 0,
        ((_some_failed, UPSTREAM_FAILED), (_always, UPSTREAM_SKIPPED)),
    ),
    TriggerRule.ALL_DONE: _Rule(lambda t: t.open == 0),
    TriggerRule.ALL_FAILED: _Rule(lambda t: t.open == t.succeeded == t.skipped == 0, ((_always, NOT_ALL_FAILED),)),
    TriggerRule.ONE_SUCCESS: _Rule(
        lambda t: t.succeeded > 0, ((_some_failed, UPSTREAM_FAILED), (_always, UPSTREAM_SKIPPED))
    ),
    TriggerRule.ONE_FAILED: _Rule(_some_failed, ((_always, NONE_FAILED),)),
    TriggerRule.NONE_FAILED: _Rule(lambda t: t.open == t.failed == 0, ((_always, UPSTREAM_FAILED),)),
}
NEEDS_DEPENDENCIES = frozenset({TriggerRule.ONE_SUCCESS, TriggerRule.ONE_FAILED, TriggerRule.ALL_FAILED})


@immutable
class Run:
    """It may start."""


@immutable
class Wait:
    """It hangs on what is still open."""


Verdict = Run | Wait | Skip
RUN, WAIT = Run(), Wait()


def decide(rule: TriggerRule, tally: Tally) -> Verdict:
    """What becomes of a node whose dependencies stand so."""
    row = _RULES[rule]
    if row.runs(tally):
        return RUN
    if tally.open:
        return WAIT
    return next((skip for test, skip in row.skips if test(tally)), RUN)


@immutable
class Graph:
    """Nodes in an order in which each follows what it depends on."""

    dependencies: Mapping[str, tuple[str, ...]]
    rules: Mapping[str, TriggerRule]
    successors: Mapping[str, tuple[str, ...]]

    @classmethod
    def of(cls, dependencies: Mapping[str, tuple[str, ...]], rules: Mapping[str, TriggerRule]) -> "Graph":
        """InvalidDag if a node depends on one that is not there, or on itself by any way round."""
        following: dict[str, list[str]] = {node: [] for node in dependencies}
        for node, needed in dependencies.items():
            for each in needed:
                if each not in following:
                    raise InvalidDag("dag.nodes", f"node {node!r} depends on {each!r}, which is not there", node=node)
                following[each].append(node)
        order = _ordered(dependencies, following)
        return cls(
            {node: dependencies[node] for node in order},
            {node: rules.get(node, TriggerRule.ALL_SUCCESS) for node in order},
            {node: tuple(each) for node, each in following.items()},
        )

    def __contains__(self, node: object) -> bool:
        return node in self.dependencies

    def __len__(self) -> int:
        return len(self.dependencies)


def _ordered(dependencies: Mapping[str, tuple[str, ...]], following: Mapping[str, list[str]]) -> list[str]:
    left = {node: len(needed) for node, needed in dependencies.items()}
    order = [node for node, count in left.items() if count == 0]
    for node in order:  # grows while it is walked
        for each in following[node]:
            left[each] -= 1
            if left[each] == 0:
                order.append(each)
    if len(order) < len(dependencies):
        path = _cycle(dependencies, {node for node, count in left.items() if count})
        told = f"the graph has a cycle: {' → '.join(path)}"
        raise InvalidDag("dag.nodes", told, node=path[0], cycle=path)
    return order


def _cycle(dependencies: Mapping[str, tuple[str, ...]], stuck: set[str]) -> list[str]:
    """Every stuck node depends on a stuck one, so walking back must come round."""
    node = min(stuck)
    seen: dict[str, int] = {}
    path: list[str] = []
    while node not in seen:
        seen[node] = len(path)
        path.append(node)
        node = next(each for each in dependencies[node] if each in stuck)
    return [node, *reversed(path[seen[node] :])]


class Advance:
    """The ends of some nodes of one run, carried on as far as they reach.

    It knows no more of the run than it is told: `wanted` are nodes that it has met and whose tallies it needs; `learn` tells
    them. Those that are not PENDING are told as absent: they have been decided already.
    """

    __slots__ = ("_known", "_reaching", "graph", "skipped", "started", "tallies")

    def __init__(self, graph: Graph, ended: Mapping[str, Standing]) -> None:
        after = graph.successors
        self.graph = graph
        self._reaching = [(each, standing) for node, standing in ended.items() for each in after.get(node, ())]
        self._known: set[str] = set()
        self.tallies: dict[str, Tally] = {}
        """Of the nodes that were met and are PENDING, as they stand now."""
        self.started: set[str] = set()
        self.skipped: dict[str, Skip] = {}

    @property
    def wants_more(self) -> bool:
        """Whether there is anything `wanted`."""
        return bool(self._reaching)

    @property
    def wanted(self) -> frozenset[str]:
        return frozenset([node for node, _ in self._reaching])

    def learn(self, pending: Mapping[str, Tally]) -> None:
        """The tallies of those `wanted` nodes that are PENDING; may tell more than was asked."""
        self.tallies = {**pending, **self.tallies} if self.tallies else dict(pending)
        arrived, self._reaching = self._reaching, []
        for node, standing in arrived:
            self._apply(node, standing)
        if not self._reaching:
            return  # nothing was skipped
        self._known.update(pending)
        self._known.update([node for node, _ in arrived])
        while arrived := [each for each in self._reaching if each[0] in self._known]:
            self._reaching = [each for each in self._reaching if each[0] not in self._known]
            for node, standing in arrived:
                self._apply(node, standing)

    def beyond(self) -> frozenset[str]:
        """Everything that could yet be met from `wanted` on: to be told at once, instead of step by step."""
        met = set(self.wanted)
        waiting = list(met)
        while waiting:
            for each in self.graph.successors[waiting.pop()]:
                if each not in met:
                    met.add(each)
                    waiting.append(each)
        return frozenset(met)

    def _apply(self, node: str, standing: Standing) -> None:
        tally = self.tallies.get(node)
        if tally is None:
            return
        self.tallies[node] = tally = tally.after(standing)
        if node in self.skipped or node in self.started:
            return
        verdict = decide(self.graph.rules[node], tally)
        if verdict is RUN:
            self.started.add(node)
        elif isinstance(verdict, Skip):
            self.skipped[node] = verdict
            self._reaching += [(each, verdict.standing) for each in self.graph.successors.get(node, ())]


@dataclass(slots=True)
class Evaluation:
    """What becomes of every PENDING node of a run."""

    tallies: dict[str, Tally] = field(default_factory=dict)
    """Of the nodes that go on waiting."""
    ready: list[str] = field(default_factory=list)
    skipped: dict[str, Skip] = field(default_factory=dict)


def evaluate(graph: Graph, standings: Mapping[str, Standing]) -> Evaluation:
    """Decides every PENDING node, from nothing but how each node stands."""
    now = dict(standings)
    found = Evaluation()
    for node, needed in graph.dependencies.items():
        if now[node] is not Standing.PENDING:
            continue
        tally = tally_of(now[each] for each in needed)
        match decide(graph.rules[node], tally):
            case Run():
                found.ready.append(node)
                now[node] = Standing.ACTIVE
            case Skip() as skip:
                found.skipped[node] = skip
                now[node] = skip.standing
            case Wait():
                found.tallies[node] = tally
    return found


def tally_of(standings: Iterable[Standing]) -> Tally:
    counts = Counter(standings)
    return Tally(
        counts[Standing.PENDING] + counts[Standing.ACTIVE],
        counts[Standing.SUCCEEDED],
        counts[Standing.FAILED],
        counts[Standing.SKIPPED],
    )


def standing_of(status: ExecutionStatus, reason: str | None = None) -> Standing:
    """How a node in that state stands; `reason` is why it was skipped."""
    if status is ExecutionStatus.SKIPPED and reason == UPSTREAM_FAILED.reason:
        return Standing.FAILED
    return _STANDINGS[status]


_STANDINGS: Mapping[ExecutionStatus, Standing] = {
    **dict.fromkeys(ExecutionStatus, Standing.ACTIVE),
    **dict.fromkeys(TERMINAL, Standing.FAILED),
    **dict.fromkeys(SUCCEEDED, Standing.SUCCEEDED),
    ExecutionStatus.PENDING: Standing.PENDING,
    ExecutionStatus.SKIPPED: Standing.SKIPPED,
}


@immutable
class NodeNow:
    """A node as it stands, for an order that a person gives."""

    status: ExecutionStatus
    reason: str | None = None
    attempt: int = 0

    @property
    def standing(self) -> Standing:
        return standing_of(self.status, self.reason)

    @property
    def undecided(self) -> bool:
        """It never ran, and only because of others: it is decided anew when they are."""
        if self.status is ExecutionStatus.SKIPPED:
            return self.reason in DECIDED_SKIPS
        return self.status is ExecutionStatus.STOPPED and self.attempt == 0


def undone_by(graph: Graph, nodes: Mapping[str, NodeNow], changed: Iterable[str]) -> frozenset[str]:
    """The nodes that were skipped, or stopped before they began, because of these: PENDING again when these change."""
    found: set[str] = set()
    waiting = list(changed)
    while waiting:
        for each in graph.successors[waiting.pop()]:
            if each not in found and nodes[each].undecided:
                found.add(each)
                waiting.append(each)
    return frozenset(found)


def stopped_before(graph: Graph, nodes: Mapping[str, NodeNow], wanted: Iterable[str]) -> frozenset[str]:
    """The nodes on which these hang and that were stopped before they began: they must go on as well."""
    found: set[str] = set()
    waiting = list(wanted)
    while waiting:
        for each in graph.dependencies[waiting.pop()]:
            if each not in found and nodes[each].status is ExecutionStatus.STOPPED and nodes[each].attempt == 0:
                found.add(each)
                waiting.append(each)
    return frozenset(found)
