"""`/api/v1/callbacks`: how a target reports the result of an asynchronous run."""

from fastapi import APIRouter, HTTPException, Request

from ksana.api.contracts.bodies import body_of, parsed
from ksana.api.contracts.cronjob import writing
from ksana.api.contracts.cronjob.answers import AnyCallbackAccepted, CallbackAccepted, NodeCallbackAccepted
from ksana.api.contracts.cronjob.documented import errors
from ksana.api.contracts.cronjob.problems import CallbackStale
from ksana.api.contracts.cronjob.shapes import NamesNode, Report, ReportByAnyIds, ReportByIds, ReportByNode
from ksana.api.contracts.keys import found_run, possible_node
from ksana.api.contracts.values import as_json
from ksana.api.services import Services
from ksana.domain.states import TERMINAL
from ksana.engine.commands import CallbackMessage
from ksana.executors.sensitive import is_sensitive

CALLBACKS = "/api/v1/callbacks"
MAX_REPORT = 256 * 1024


class Callbacks:
    def __init__(self, services: Services) -> None:
        self._services = services

    def add_to(self, router: APIRouter) -> None:
        add, by_token = router.add_api_route, f"{CALLBACKS}/{{callback_token}}"
        answers, body = errors(400, 404, 409, 413), body_of(Report)
        told = "Report a result by token"
        add(by_token, self.by_token, methods=["POST"], summary=told, responses=answers, openapi_extra=body)
        add(by_token, self.put, methods=["PUT"], summary=told, responses=answers, openapi_extra=body)
        if getattr(self._services.settings.callback, "allow_ids", True):
            body = body_of(ReportByAnyIds)
            told = "Report a result by ids"
            add(CALLBACKS, self.by_ids, methods=["POST"], summary=told, responses=answers, openapi_extra=body)

    async def by_token(self, callback_token: str, request: Request) -> CallbackAccepted:
        """Repeated, it answers how the run ended. A token of an earlier attempt, or one that ran out, is CALLBACK_STALE."""
        raw = await _received(request)
        return await self._report(request, raw, parsed(raw, Report), token=callback_token)

    async def put(self, callback_token: str, request: Request) -> CallbackAccepted:
        """The same, for targets that report with PUT."""
        return await self.by_token(callback_token, request)

    async def by_ids(self, request: Request) -> AnyCallbackAccepted:
        """The same without a token: the run must be the task's, and wait for a callback. A node of a workflow's run is named
        by that run's id and its own."""
        raw = await _received(request)
        if parsed(raw, NamesNode).node_id is not None:
            return AnyCallbackAccepted(await self._by_node(request, raw, parsed(raw, ReportByNode)))
        report = parsed(raw, ReportByIds)
        done = await self._report(request, raw, report, job_id=report.task_id, execution_id=report.run_id)
        return AnyCallbackAccepted(done)

    async def _by_node(self, request: Request, raw: bytes, report: ReportByNode) -> NodeCallbackAccepted:
        store = self._services.store
        run = await found_run(store, report.run_id)
        node = (await store.node_run(run.id, possible_node(report.node_id))).execution
        done = await self._report(request, raw, report, job_id=node.job_id, execution_id=node.id)
        return NodeCallbackAccepted(**{**done.model_dump(), "run_id": run.key, "node_id": report.node_id})

    async def _report(
        self,
        request: Request,
        raw: bytes,
        report: Report,
        *,
        token: str | None = None,
        job_id: int | None = None,
        execution_id: int | None = None,
    ) -> CallbackAccepted:
        as_json(report.data, field="data")
        message = CallbackMessage(
            succeeded=report.status == "SUCCESS",
            token=token,
            job_id=job_id,
            execution_id=execution_id,
            output=report.data,
            error=report.error_message or None,
            headers=_kept(request),
            body=raw.decode("utf-8", "replace"),
        )
        answer = await self._services.runs.report(message)
        if not answer.accepted and answer.execution.status not in TERMINAL:
            raise CallbackStale("this callback is of an earlier attempt, or came too late; the run goes on without it")
        return writing.callback_answer(answer.execution, accepted=answer.accepted)


async def _received(request: Request) -> bytes:
    raw = await request.body()
    if len(raw) > MAX_REPORT:
        raise HTTPException(413, f"the body is larger than {MAX_REPORT} bytes")
    return raw


def _kept(request: Request) -> dict[str, str]:
    """The headers as they came, those with several values joined, without what proves who somebody is."""
    kept: dict[str, str] = {}
    for name, value in request.headers.items():
        if not is_sensitive(name):
            kept[name] = f"{kept[name]}, {value}" if name in kept else value
    return kept
