"""From the dag of documents 000 and 001, as JSON, to a graph that can be run. What is wrong is named: field, node, cycle."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from ksana.domain.dag import NEEDS_DEPENDENCIES, Graph, TriggerRule
from ksana.domain.durations import parse_duration
from ksana.domain.errors import InvalidDag, InvalidInput
from ksana.domain.job import RecoveryRule, checked_queue
from ksana.domain.retry import RetryPolicy
from ksana.domain.workflow import MAX_ITEMS, Dag, ForEach, Node, Overlap

MAX_NODES = 20_000
MAX_NODE_ID = 100
_MILLISECOND = timedelta(milliseconds=1)
_DAG_KEYS = frozenset(
    {"job", "name", "description", "nodes", "failFast", "timeout", "maxActiveRuns", "overlap", "paramsSchema"}
)
_NODE_KEYS = frozenset(
    {
        *("id", "name", "description", "jobId", "type", "cfg", "dependsOn", "retry", "timeout"),
        *("triggerRule", "when", "forEach", "params", "recovery", "workerQueue"),
    }
)
_RETRY_KEYS = frozenset({"maxAttempts", "backoffMillis", "backoffMultiplier"})
_FOR_EACH_KEYS = frozenset({"items", "maxParallel"})


def read_dag(document: Any) -> Dag:
    """InvalidDag, at the first thing that is wrong. Jobs, executors and expressions are not looked at here."""
    if not isinstance(document, Mapping):
        raise InvalidDag("dag", "must be an object with nodes")
    _known(document, _DAG_KEYS, "dag")
    given = document.get("nodes")
    if not isinstance(given, list) or not given:
        raise InvalidDag("dag.nodes", "dag must have nodes")
    if len(given) > MAX_NODES:
        raise InvalidDag("dag.nodes", f"a dag may have at most {MAX_NODES} nodes")
    nodes = tuple(_node(each, f"dag.nodes[{index}]") for index, each in enumerate(given))
    graph = _graph(nodes)
    limit = _whole(document.get("maxActiveRuns"), "dag.maxActiveRuns", 1, 1_000_000)
    return Dag(
        document,
        nodes,
        graph,
        fail_fast=_flag(document.get("failFast"), "dag.failFast"),
        timeout=_duration(document.get("timeout"), "dag.timeout"),
        max_active_runs=limit,
        overlap=_overlap(document.get("overlap"), limit),
        params_schema=_object(document.get("paramsSchema"), "dag.paramsSchema"),
    )


def _graph(nodes: Sequence[Node]) -> Graph:
    dependencies: dict[str, tuple[str, ...]] = {}
    for index, node in enumerate(nodes):
        if node.id in dependencies:
            raise InvalidDag(f"dag.nodes[{index}].id", f"there are two nodes {node.id!r}", node=node.id)
        dependencies[node.id] = node.depends_on
    for index, node in enumerate(nodes):
        for position, each in enumerate(node.depends_on):
            if each not in dependencies:
                place = f"dag.nodes[{index}].dependsOn[{position}]"
                raise InvalidDag(place, f"node {node.id!r} depends on {each!r}, which is not there", node=node.id)
    return Graph.of(dependencies, {node.id: node.trigger_rule for node in nodes})


def _node(given: Any, place: str) -> Node:
    if not isinstance(given, Mapping):
        raise InvalidDag(place, "must be an object with an id")
    node_id = _node_id(given.get("id"), f"{place}.id")
    try:
        return _read_node(given, node_id, place)
    except InvalidDag as error:
        if "node" in error.details:
            raise
        raise InvalidDag(error.field, error.reason, node=node_id) from error


def _read_node(given: Mapping[str, Any], node_id: str, place: str) -> Node:
    _known(given, _NODE_KEYS, place)
    job, kind = given.get("jobId"), given.get("type")
    if (job is None) == (kind is None):
        raise InvalidDag(f"{place}.jobId", f"node {node_id!r} must have either jobId or type with cfg", node=node_id)
    if job is not None and "cfg" in given and given["cfg"] not in (None, {}):
        raise InvalidDag(f"{place}.cfg", "goes with type; what is different from the job goes into params")
    depends_on = _names(given.get("dependsOn"), f"{place}.dependsOn")
    rule = _rule(given.get("triggerRule"), f"{place}.triggerRule")
    if rule in NEEDS_DEPENDENCIES and not depends_on:
        raise InvalidDag(f"{place}.triggerRule", f"{rule} needs nodes to depend on")
    return Node(
        id=node_id,
        job=None if job is None else _text(job, f"{place}.jobId"),
        type=None if kind is None else _text(kind, f"{place}.type"),
        config=_object(given.get("cfg"), f"{place}.cfg") or {},
        depends_on=depends_on,
        retry=_retry(given.get("retry"), f"{place}.retry"),
        timeout=_duration(given.get("timeout"), f"{place}.timeout"),
        trigger_rule=rule,
        when=None if given.get("when") is None else _text(given["when"], f"{place}.when"),
        for_each=_for_each(given.get("forEach"), f"{place}.forEach"),
        params=_object(given.get("params"), f"{place}.params") or {},
        recovery=_recovery(given.get("recovery"), f"{place}.recovery"),
        worker_queue=_queue(given.get("workerQueue"), f"{place}.workerQueue"),
    )


def _node_id(value: Any, place: str) -> str:
    if not isinstance(value, str) or not value:
        raise InvalidDag(place, "must be given, as a string")
    fitting = all(character.isalnum() or character in "_-." for character in value) and value.strip(".")
    if not fitting or len(value) > MAX_NODE_ID:
        told = f"must be 1 to {MAX_NODE_ID} letters, digits, _ - or ."
        raise InvalidDag(place, told, node=value[:MAX_NODE_ID])
    return value


def _names(value: Any, place: str) -> tuple[str, ...]:
    if value is None:
        return ()
    if not isinstance(value, list):
        raise InvalidDag(place, "must be a list of node ids")
    seen: dict[str, None] = {}
    for index, each in enumerate(value):
        if not isinstance(each, str):
            raise InvalidDag(f"{place}[{index}]", "must be a node's id")
        if each in seen:
            raise InvalidDag(f"{place}[{index}]", f"names {each!r} twice")
        seen[each] = None
    return tuple(seen)


def _retry(value: Any, place: str) -> RetryPolicy | None:
    given = _object(value, place)
    if given is None:
        return None
    _known(given, _RETRY_KEYS, place)
    attempts = _whole(given.get("maxAttempts"), f"{place}.maxAttempts", 1, 1_000)
    millis = _whole(given.get("backoffMillis"), f"{place}.backoffMillis", 0, 10**12)
    multiplier = given.get("backoffMultiplier", 1.0)
    if isinstance(multiplier, bool) or not isinstance(multiplier, int | float):
        raise InvalidDag(f"{place}.backoffMultiplier", "must be a number")
    try:
        return RetryPolicy(attempts or 1, (millis or 0) * _MILLISECOND, float(multiplier))
    except InvalidInput as error:
        names = {"max_attempts": "maxAttempts", "delay": "backoffMillis", "multiplier": "backoffMultiplier"}
        part = names.get(error.field.rpartition(".")[2], "maxAttempts")
        raise InvalidDag(f"{place}.{part}", error.reason) from error


def _for_each(value: Any, place: str) -> ForEach | None:
    if value is None:
        return None
    if isinstance(value, str | list):
        return ForEach(_items(value, place))
    given = _object(value, place) or {}
    _known(given, _FOR_EACH_KEYS, place)
    if "items" not in given:
        raise InvalidDag(f"{place}.items", "must be given: a list, or an expression that gives one")
    parallel = _whole(given.get("maxParallel"), f"{place}.maxParallel", 1, MAX_ITEMS)
    return ForEach(_items(given["items"], f"{place}.items"), parallel)


def _items(value: Any, place: str) -> str | tuple[Any, ...]:
    if isinstance(value, list):
        if len(value) > MAX_ITEMS:
            raise InvalidDag(place, f"may have at most {MAX_ITEMS} items")
        return tuple(value)
    return _text(value, place)


def _rule(value: Any, place: str) -> TriggerRule:
    if value is None:
        return TriggerRule.ALL_SUCCESS
    try:
        return TriggerRule(value.lower())
    except (ValueError, AttributeError):
        raise InvalidDag(place, f"must be one of {', '.join(TriggerRule)}") from None


def _recovery(value: Any, place: str) -> RecoveryRule | None:
    try:
        return None if value is None else RecoveryRule(value.lower())
    except (ValueError, AttributeError):
        raise InvalidDag(place, f"must be one of {', '.join(RecoveryRule)}") from None


def _queue(value: Any, place: str) -> str | None:
    try:
        return None if value is None else checked_queue(_text(value, place))
    except InvalidInput as error:
        raise InvalidDag(place, error.reason) from None


def _overlap(value: Any, limit: int | None) -> Overlap:
    if value is None:
        return Overlap.PARALLEL if limit is None else Overlap.QUEUE
    try:
        overlap = Overlap(value.upper())
    except (ValueError, AttributeError):
        raise InvalidDag("dag.overlap", f"must be one of {', '.join(Overlap)}") from None
    if limit is None and overlap is not Overlap.PARALLEL:
        raise InvalidDag("dag.maxActiveRuns", f"must be given with overlap {overlap}")
    return overlap


def _known(given: Mapping[str, Any], keys: frozenset[str], place: str) -> None:
    for key in given:
        if key not in keys:
            raise InvalidDag(f"{place}.{key}", f"is not known; there are: {', '.join(sorted(keys))}")


def _object(value: Any, place: str) -> Mapping[str, Any] | None:
    if value is None or isinstance(value, Mapping):
        return value
    raise InvalidDag(place, "must be an object")


def _text(value: Any, place: str) -> str:
    if not isinstance(value, str) or not value.strip():
        raise InvalidDag(place, "must be a text that is not blank")
    return value.strip()


def _flag(value: Any, place: str) -> bool:
    if value is not None and not isinstance(value, bool):
        raise InvalidDag(place, "must be true or false")
    return bool(value)


def _whole(value: Any, place: str, least: int, most: int) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise InvalidDag(place, f"must be a whole number from {least} to {most}")
    return value


def _duration(value: Any, place: str) -> timedelta | None:
    if value is None:
        return None
    try:
        duration = parse_duration(value, field=place)
    except InvalidInput as error:
        raise InvalidDag(place, error.reason) from error
    if duration <= timedelta(0):
        raise InvalidDag(place, "must be longer than nothing")
    return duration
