"""Schedules by themselves: a job may have several."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ksana.domain.clock import Clock
from ksana.domain.errors import Conflict, NotFound, VersionMismatch
from ksana.domain.events import Actor
from ksana.domain.ledger import Schedule
from ksana.domain.schedule import ScheduleSpec
from ksana.engine.commands.anew import until_it_fits
from ksana.engine.commands.jobs import ScheduleDraft, changed, new_schedule, resumption
from ksana.engine.params import check_params
from ksana.engine.signals import Signals
from ksana.store.base import Store


@dataclass(frozen=True, slots=True)
class ScheduleEdit:
    """What a schedule becomes: its whole definition; `inputs` of None leaves those as they are."""

    spec: ScheduleSpec
    inputs: Mapping[str, Any] | None = None
    expected_version: int | None = None


class ScheduleCommands:
    def __init__(self, store: Store, clock: Clock, signals: Signals) -> None:
        self._store = store
        self._clock = clock
        self._signals = signals

    async def create(
        self,
        job_id: int | None,
        spec: ScheduleSpec,
        actor: Actor,
        *,
        paused: bool = False,
        inputs: Mapping[str, Any] | None = None,
        workflow_id: int | None = None,
    ) -> Schedule:
        """A further schedule of a job, which starts paused if its job is disabled; or, with a `job_id` of None, of a workflow:
        then `inputs` are the parameters of its runs. NotFound, InvalidInput."""
        if job_id is not None:
            paused = paused or not (await self._store.job(job_id)).spec.enabled
        else:
            inputs = await self._checked(workflow_id, inputs or {})
        draft = ScheduleDraft(spec, inputs or {})
        new = new_schedule(draft, self._clock.now(), paused=paused)
        return self._told(await self._store.create_schedule(job_id, new, actor, workflow_id=workflow_id))

    async def _checked(self, workflow_id: int | None, inputs: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
        """The parameters of a workflow's runs, as its schema has them. InvalidInput."""
        if workflow_id is None or inputs is None:
            return inputs
        schema = (await self._store.workflow(workflow_id)).spec.dag.params_schema
        return inputs if schema is None else check_params(schema, inputs, field="input")

    async def amend(self, key: str, amendment: Callable[[Schedule], ScheduleEdit], actor: Actor) -> Schedule:
        """A change that follows from what the schedule is; worked out anew if somebody else changes it first. NotFound,
        VersionMismatch if the edit's `expected_version` is no longer its version."""
        given: int | None = None

        async def attempt() -> Schedule:
            nonlocal given
            schedule = await self._store.schedule_by_key(key)
            edit = amendment(schedule)
            given = edit.expected_version
            if given not in {None, schedule.version}:
                raise VersionMismatch("schedule", key, expected=given or 0, actual=schedule.version)
            edit = replace(edit, inputs=await self._checked(schedule.workflow_id, edit.inputs))
            if edit.spec == schedule.spec and edit.inputs in (None, schedule.input):
                return schedule
            change = replace(changed(schedule, edit.spec, self._clock.now(), actor), input=edit.inputs)
            return await self._store.change_schedule(change)

        return self._told(await until_it_fits(attempt, lambda _: given is None))

    async def pause(self, key: str, actor: Actor) -> Schedule:
        """NotFound."""
        schedule = await self._store.schedule_by_key(key)
        return self._told(await self._store.pause_schedule(schedule.id, actor))

    async def resume(self, key: str, actor: Actor) -> Schedule:
        """It goes on with the first instant after now; what passed is recorded. NotFound, Conflict if its job is disabled."""

        async def attempt() -> Schedule:
            schedule = await self._store.schedule_by_key(key)
            if schedule.job_id is not None and not (await self._store.job(schedule.job_id)).spec.enabled:
                raise Conflict("its job is disabled: enable that, and its schedules go on")
            going_on = resumption(schedule, schedule.spec, self._clock.now(), actor)
            return await self._store.resume_schedule(going_on)

        return self._told(await until_it_fits(attempt))

    def _told(self, schedule: Schedule) -> Schedule:
        self._signals.schedules_changed([schedule])
        return schedule

    async def delete(self, key: str, actor: Actor) -> None:
        """NotFound."""
        schedule = await self._store.schedule_by_key(key)
        if not await self._store.delete_schedule(schedule.id, actor):
            raise NotFound("schedule", key)
