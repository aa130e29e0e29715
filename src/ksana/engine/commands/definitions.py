"""From the definition of a workflow to what its runs start with: jobs found, configs checked, expressions compiled.

What is wrong is an InvalidDag that names the place in the dag and the node. `Resolver` keeps what it has worked out, as long as
neither the workflow nor a job that it names has changed.
"""

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from hashlib import sha256
from typing import Any, Protocol

import orjson

from ksana.domain.errors import DisabledJob, InvalidDag, InvalidInput, NotFound, UnknownJob
from ksana.domain.job import ConcurrencyPolicy, ExecutionMode, Job, JobSpec
from ksana.domain.job_config import HTTP, split_config
from ksana.domain.workflow import WAIT, WORKFLOW, Dag, Node, Snapshot, SnapshotNode, Workflow
from ksana.engine.expressions import check_expression
from ksana.engine.params import check_schema
from ksana.executors.templates import referenced_nodes_in
from ksana.executors.templates_filters import TemplateFailed
from ksana.store.base import Store
from ksana.store.workflow_requests import References

NAMES = frozenset({"params", "nodes", "scheduled_at"})
_WORKFLOW_KEYS = ("workflowId", "params")
KEPT = 64
LARGEST = 6_000_000
"""Bytes of a snapshot; a little less than what a row of the store may have."""


class Checks(Protocol):
    """Knows which configs can be run. (`ksana.executors.registry`)"""

    def check(self, job_type: str, config: Mapping[str, Any]) -> Mapping[str, Any]:
        """The config with its defaults. InvalidInput."""


@dataclass(frozen=True, slots=True)
class NodeDefaults:
    """How long a node may take that carries its job itself and does not say."""

    http_timeout: timedelta = timedelta(seconds=15)
    timeout: timedelta = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Resolved:
    snapshot: Snapshot
    references: References
    jobs: tuple[tuple[str, int, int], ...]
    """What was found of the jobs that it names: key, id, version."""


class Resolver:
    def __init__(self, store: Store, checks: Checks, defaults: NodeDefaults) -> None:
        self._store = store
        self._checks = checks
        self._defaults = defaults
        self._kept: OrderedDict[tuple[Any, ...], Resolved] = OrderedDict()

    async def of_workflow(self, workflow: Workflow) -> Resolved:
        """As `resolve`, of a workflow as it stands."""
        jobs = await self._jobs(workflow.spec.dag)
        name = (workflow.id, workflow.version, _versions(jobs))
        if name not in self._kept:
            self.keep(workflow, await self._resolved(workflow.spec.dag, jobs, workflow.id))
        self._kept.move_to_end(name)
        return self._kept[name]

    def keep(self, workflow: Workflow, resolved: Resolved) -> None:
        """That this is what the workflow, as it stands, comes to."""
        self._kept[workflow.id, workflow.version, resolved.jobs] = resolved
        while len(self._kept) > KEPT:
            self._kept.popitem(last=False)

    async def resolve(self, dag: Dag, workflow_id: int | None = None) -> Resolved:
        """InvalidDag, UnknownJob, DisabledJob. `workflow_id` is the workflow's own, if it has one yet: it must not come back to
        itself."""
        return await self._resolved(dag, await self._jobs(dag), workflow_id)

    async def _resolved(self, dag: Dag, jobs: Mapping[str, Job], workflow_id: int | None) -> Resolved:
        if dag.params_schema is not None:
            try:
                check_schema(dag.params_schema, field="dag.paramsSchema")
            except InvalidInput as error:
                raise InvalidDag(error.field, error.reason) from error
        made = _Nodes(dag, jobs, self._checks, self._defaults).resolved()
        others = await self._workflows(dag, workflow_id)
        ids = frozenset(job.id for job in jobs.values())
        return Resolved(Snapshot(_digest(dag, made), dag, made), References(ids, others), _versions(jobs))

    async def _jobs(self, dag: Dag) -> dict[str, Job]:
        wanted = {node.job for node in dag.nodes if node.job is not None}
        if not wanted:
            return {}
        found = dict(await self._store.jobs_by_keys(sorted(wanted)))
        for key in wanted - found.keys():
            if key.isascii() and key.isdigit() and len(key) <= 15:  # document 003's integer
                try:
                    found[key] = await self._store.job(int(key))
                except NotFound:
                    continue
        return found

    async def _workflows(self, dag: Dag, workflow_id: int | None) -> frozenset[int]:
        """The workflows that nodes of it are; InvalidDag if one is not there, or leads back here."""
        named: dict[int, tuple[int, Node]] = {}
        for index, node in enumerate(dag.nodes):
            if node.type == WORKFLOW:
                key = str(node.config.get("workflowId"))
                try:
                    named.setdefault((await self._store.workflow_by_key(key)).id, (index, node))
                except NotFound:
                    place = f"dag.nodes[{index}].cfg.workflowId"
                    raise InvalidDag(place, f"there is no workflow {key!r}", node=node.id) from None
        if workflow_id is not None:
            for other, (index, node) in named.items():
                if other == workflow_id or await self._leads_to(other, workflow_id):
                    place = f"dag.nodes[{index}].cfg.workflowId"
                    raise InvalidDag(
                        place, "leads back to this workflow: workflows must not run in circles", node=node.id
                    )
        return frozenset(named)

    async def _leads_to(self, begin: int, end: int) -> bool:
        seen, waiting = {begin}, [begin]
        while waiting:
            named = await self._store.workflows_named_by(waiting)
            found = {each for ids in named.values() for each in ids}
            if end in found:
                return True
            waiting = sorted(found - seen)
            seen |= found
        return False


def _versions(jobs: Mapping[str, Job]) -> tuple[tuple[str, int, int], ...]:
    return tuple(sorted((key, job.id, job.version) for key, job in jobs.items()))


class _Nodes:
    """The nodes of one dag, on their way to a snapshot."""

    def __init__(self, dag: Dag, jobs: Mapping[str, Job], checks: Checks, defaults: NodeDefaults) -> None:
        self._dag = dag
        self._jobs = jobs
        self._checks = checks
        self._defaults = defaults
        self._before = _Ancestors(dag)

    def resolved(self) -> dict[str, SnapshotNode]:
        return {node.id: self._node(node, f"dag.nodes[{index}]") for index, node in enumerate(self._dag.nodes)}

    def _node(self, node: Node, place: str) -> SnapshotNode:
        job = None
        if node.job is not None:
            job = self._job(node, f"{place}.jobId")
            spec = self._of_job(node, job, place)
        else:
            spec = self._inline(node, place)
        needs = self._needs(node, spec, place)
        if job is None:
            return SnapshotNode(node, spec, needs=needs)
        return SnapshotNode(node, spec, job.id, job.key, needs)

    def _job(self, node: Node, place: str) -> Job:
        job = self._jobs.get(node.job or "")
        if job is None:
            raise UnknownJob(place, f"job not found: {node.job}", node=node.id, jobId=node.job)
        if not job.spec.enabled:
            raise DisabledJob(place, f"job is disabled: {node.job}", node=node.id, jobId=node.job)
        return job

    def _of_job(self, node: Node, job: Job, place: str) -> JobSpec:
        spec = job.spec
        if node.params:
            merged = {**{key: value for key, value in spec.config.items() if value is not None}, **node.params}
            spec = self._with_config(spec, merged, f"{place}.params", node)
        return self._overridden(spec, node)

    def _inline(self, node: Node, place: str) -> JobSpec:
        kind = node.type or ""
        timeout = self._defaults.http_timeout if kind == HTTP else self._defaults.timeout
        try:
            spec = JobSpec(node.id, kind, {}, timeout=timeout, concurrency=ConcurrencyPolicy.PARALLEL)
        except InvalidInput as error:
            raise InvalidDag(f"{place}.{error.field}", error.reason, node=node.id) from error
        merged = {**node.config, **node.params}
        return self._overridden(self._with_config(spec, merged, f"{place}.cfg", node), node)

    def _with_config(self, spec: JobSpec, config: Mapping[str, Any], place: str, node: Node) -> JobSpec:
        try:
            if spec.type == WORKFLOW:
                return replace(spec, config=_workflow_config(config))
            plain, mode, wait = split_config(spec.type, config)
            checked = self._checks.check(spec.type, plain)
        except InvalidInput as error:
            part = f"{place.rpartition('.')[0]}.type" if error.field == "type" else f"{place}.{error.field}"
            raise InvalidDag(part, error.reason, node=node.id) from error
        if spec.type == WAIT:
            mode = ExecutionMode.SYNC if checked.keys() & {"for", "until"} else ExecutionMode.ASYNC
        elif "mode" not in config:
            mode = spec.mode
        if "callback_timeout" not in config:
            wait = spec.callback_timeout
        return replace(spec, config=checked, mode=mode, callback_timeout=wait)

    def _overridden(self, spec: JobSpec, node: Node) -> JobSpec:
        return replace(
            spec,
            retry=node.retry or spec.retry,
            timeout=node.timeout or spec.timeout,
            recovery=node.recovery or spec.recovery,
            worker_queue=node.worker_queue or spec.worker_queue,
        )

    def _needs(self, node: Node, spec: JobSpec, place: str) -> tuple[str, ...]:
        """The nodes whose artifacts it uses; all of them must have ended before it begins."""
        needs: set[str] = set()
        try:
            if node.when is not None:
                needs |= check_expression(node.when, field=f"{place}.when", names=NAMES).nodes
            if node.for_each is not None and isinstance(node.for_each.items, str):
                needs |= check_expression(node.for_each.items, field=f"{place}.forEach.items", names=NAMES).nodes
            needs |= referenced_nodes_in(spec.config)
        except InvalidInput as error:
            raise InvalidDag(error.field, error.reason, node=node.id) from error
        except TemplateFailed as error:
            raise InvalidDag(f"{place}.{'params' if node.job else 'cfg'}", str(error), node=node.id) from error
        for each in sorted(needs):
            if not self._before.of(node.id, each):
                told = f"node {node.id!r} uses what {each!r} makes, but does not depend on it"
                raise InvalidDag(f"{place}.dependsOn", told, node=node.id)
        return tuple(sorted(needs))


class _Ancestors:
    """Which nodes come before which: a bit for each, so that ten thousand nodes cost a few megabytes, and only if asked."""

    def __init__(self, dag: Dag) -> None:
        self._dag = dag
        self._bits: dict[str, int] = {}
        self._before: dict[str, int] = {}

    def of(self, node: str, other: str) -> bool:
        dependencies = self._dag.graph.dependencies
        if other in dependencies[node]:
            return True
        if not self._bits:
            self._bits = {each: 1 << place for place, each in enumerate(dependencies)}
            for each, needed in dependencies.items():
                before = 0
                for one in needed:
                    before |= self._bits[one] | self._before[one]
                self._before[each] = before
        return bool(self._before[node] & self._bits.get(other, 0))


def _workflow_config(config: Mapping[str, Any]) -> dict[str, Any]:
    for key in config:
        if key not in _WORKFLOW_KEYS:
            raise InvalidInput(str(key), f"not known; there are: {', '.join(_WORKFLOW_KEYS)}")
    if not isinstance(config.get("workflowId"), str) or not config["workflowId"]:
        raise InvalidInput("workflowId", "must name a workflow")
    params = config.get("params")
    if params is not None and not isinstance(params, Mapping):
        raise InvalidInput("params", "must be an object")
    return {"workflowId": config["workflowId"], "params": dict(params or {})}


def _digest(dag: Dag, nodes: Mapping[str, SnapshotNode]) -> str:
    """By all that a run starts with."""
    specs: dict[int, JobSpec] = {id(each.spec): each.spec for each in nodes.values()}
    places = {spec_id: place for place, spec_id in enumerate(specs)}
    made: Sequence[Any] = [(places[id(each.spec)], each.job_id, each.job_key) for each in nodes.values()]
    document = orjson.dumps([dag.document, list(specs.values()), made], default=str, option=orjson.OPT_SORT_KEYS)
    if len(document) > LARGEST:
        raise InvalidDag("dag", f"is larger than {LARGEST} bytes, with the jobs that it names")
    return sha256(document).hexdigest()
