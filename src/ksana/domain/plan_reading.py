"""From a plan as JSON to what it is. What is wrong is named: the field, as the caller wrote it."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ksana.domain.dag import TriggerRule
from ksana.domain.errors import InvalidInput
from ksana.domain.ids import checked_key
from ksana.domain.job import DESCRIPTION_LENGTH, checked_name
from ksana.domain.plan import MAX_CONCURRENCY, MAX_STAGES, MAX_TENANTS, Budget, OnBusy, PlanSpec, Tenant, Wave

_PLAN_KEYS = frozenset(
    {
        *("planId", "name", "description", "stages", "tenants", "maxConcurrency", "waves", "failureBudget"),
        *("autoStart", "onBusy", "params"),
    }
)
_STAGE_KEYS = frozenset(
    {"name", "description", "jobId", "type", "config", "retry", "timeout", "params", "when", "recovery", "workerQueue"}
)
_WAVE_KEYS = frozenset({"size", "percent", "pauseAfter", "gate"})
_GATE_KEYS = frozenset({"maxFailedPercent"})
_TENANT_KEYS = frozenset({"tenantId", "params"})
MAX_WAVES = 100


def read_plan(given: Any) -> tuple[PlanSpec, tuple[Tenant, ...]]:
    """InvalidInput, at the first thing that is wrong. What the stages are made of is not looked at here."""
    if not isinstance(given, Mapping):
        raise InvalidInput("body", "must be an object")
    _known(given, _PLAN_KEYS, "")
    stages = _list(given.get("stages"), "stages", 1, MAX_STAGES)
    tenants = tuple(_tenants(_list(given.get("tenants"), "tenants", 1, MAX_TENANTS)))
    spec = PlanSpec(
        name=checked_name(_text(given.get("name"), "name")),
        stages=tuple(_stage(each, f"stages[{index}]") for index, each in enumerate(stages)),
        stage_names=_stage_names(stages),
        max_concurrency=_whole(given.get("maxConcurrency", 1), "maxConcurrency", 1, MAX_CONCURRENCY),
        waves=_waves(given.get("waves")),
        failure_budget=_budget(given.get("failureBudget"), len(tenants)),
        on_busy=_on_busy(given.get("onBusy")),
        description=_description(given.get("description")),
        params=_object(given.get("params"), "params"),
    )
    return spec, tenants


def stages_as_dag(spec: PlanSpec) -> dict[str, Any]:
    """The workflow that a tenant's task is a run of: each stage after the one before it, unless that failed."""
    nodes: list[dict[str, Any]] = []
    for name, stage in zip(spec.stage_names, spec.stages, strict=True):
        own = {key: value for key, value in stage.items() if key not in {"name", "config"} and value is not None}
        node = {**own, "id": name}
        if "config" in stage:
            node["cfg"] = stage["config"]
        if nodes:
            node |= {"dependsOn": [nodes[-1]["id"]], "triggerRule": TriggerRule.NONE_FAILED.value}
        nodes.append(node)
    return {"nodes": nodes}


def stage_field(field: str) -> str:
    """The place in the stages that a place in their dag is."""
    return field.replace("dag.nodes[", "stages[", 1).replace("].cfg", "].config", 1).replace("].id", "].name", 1)


def _stage(given: Any, place: str) -> Mapping[str, Any]:
    if not isinstance(given, Mapping):
        raise InvalidInput(place, "must be an object with a name")
    _known(given, _STAGE_KEYS, f"{place}.")
    return dict(given)


def _stage_names(stages: Sequence[Any]) -> tuple[str, ...]:
    names: dict[str, int] = {}
    for index, stage in enumerate(stages):
        name = _text(stage.get("name"), f"stages[{index}].name")
        if name in names:
            raise InvalidInput(f"stages[{index}].name", f"is the name of stages[{names[name]}], too")
        names[name] = index
    return tuple(names)


def _tenants(given: Sequence[Any]) -> Iterator[Tenant]:
    seen: dict[str, int] = {}
    for index, each in enumerate(given):
        place = f"tenants[{index}]"
        if isinstance(each, Mapping):
            _known(each, _TENANT_KEYS, f"{place}.")
            place, value, params = (
                f"{place}.tenantId",
                each.get("tenantId"),
                _object(each.get("params"), f"{place}.params"),
            )
        else:
            value, params = each, {}
        tenant_id = tenant_key(value, place)
        if tenant_id in seen:
            raise InvalidInput(place, f"{tenant_id!r} is tenants[{seen[tenant_id]}], too")
        seen[tenant_id] = index
        yield Tenant(tenant_id, params)


def tenant_key(value: Any, place: str) -> str:
    """A tenant's id: as other ids, and it may be a number."""
    text = _text(value, place)
    return text if text.isascii() and text.isdigit() and len(text) <= 64 else checked_key(text, field=place)


def _waves(given: Any) -> tuple[Wave, ...]:
    if given is None:
        return ()
    waves = tuple(_wave(each, f"waves[{index}]") for index, each in enumerate(_list(given, "waves", 0, MAX_WAVES)))
    share = sum(wave.percent or 0 for wave in waves)
    if share > 100:
        raise InvalidInput("waves", f"have {share:g} % of the tenants in all")
    return waves


def _wave(given: Any, place: str) -> Wave:
    if not isinstance(given, Mapping):
        raise InvalidInput(place, "must be an object with a size or a percent")
    _known(given, _WAVE_KEYS, f"{place}.")
    size, percent = given.get("size"), given.get("percent")
    if (size is None) == (percent is None):
        raise InvalidInput(f"{place}.size", "must be given, or percent, and not both")
    gate = _object(given.get("gate"), f"{place}.gate")
    _known(gate, _GATE_KEYS, f"{place}.gate.")
    if gate and "maxFailedPercent" not in gate:
        raise InvalidInput(f"{place}.gate.maxFailedPercent", "must be given")
    most = gate.get("maxFailedPercent")
    return Wave(
        size=None if size is None else _whole(size, f"{place}.size", 1, MAX_TENANTS),
        percent=None if percent is None else _percent(percent, f"{place}.percent", above_zero=True),
        pause_after=_flag(given.get("pauseAfter"), f"{place}.pauseAfter"),
        max_failed_percent=None if most is None else _percent(most, f"{place}.gate.maxFailedPercent"),
    )


def _budget(given: Any, tenants: int) -> Budget | None:
    """So many tenants, or a share of them as in `"5%"`."""
    if given is None:
        return None
    if isinstance(given, str) and given.strip().endswith("%"):
        try:
            number = float(given.strip()[:-1])
        except ValueError:
            raise InvalidInput("failureBudget", 'must be a number of tenants, or a share as "5%"') from None
        return Budget(percent=_percent(number, "failureBudget"))
    if isinstance(given, bool) or not isinstance(given, int):
        raise InvalidInput("failureBudget", 'must be a number of tenants, or a share as "5%"')
    return Budget(count=_whole(given, "failureBudget", 0, max(tenants, 1)))


def _on_busy(given: Any) -> OnBusy:
    try:
        return OnBusy.REJECT if given is None else OnBusy(given.upper())
    except (ValueError, AttributeError):
        raise InvalidInput("onBusy", f"must be one of {', '.join(OnBusy)}") from None


def _description(given: Any) -> str:
    text = "" if given is None else given
    if not isinstance(text, str) or len(text) > DESCRIPTION_LENGTH:
        raise InvalidInput("description", f"must be a text of at most {DESCRIPTION_LENGTH} characters")
    return text


def _known(given: Mapping[str, Any], keys: frozenset[str], place: str) -> None:
    for key in given:
        if key not in keys:
            raise InvalidInput(f"{place}{key}", f"is not known; there are: {', '.join(sorted(keys))}")


def _list(given: Any, place: str, least: int, most: int) -> Sequence[Any]:
    if not isinstance(given, list) or not least <= len(given) <= most:
        raise InvalidInput(place, f"must be a list of {least} to {most}")
    return given


def _object(given: Any, place: str) -> Mapping[str, Any]:
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise InvalidInput(place, "must be an object")
    return given


def _text(given: Any, place: str) -> str:
    if not isinstance(given, str) or not given.strip():
        raise InvalidInput(place, "must be a text that is not blank")
    return given.strip()


def _flag(given: Any, place: str) -> bool:
    if given is not None and not isinstance(given, bool):
        raise InvalidInput(place, "must be true or false")
    return bool(given)


def _whole(given: Any, place: str, least: int, most: int) -> int:
    if isinstance(given, bool) or not isinstance(given, int) or not least <= given <= most:
        raise InvalidInput(place, f"must be a whole number from {least} to {most}")
    return given


def _percent(given: Any, place: str, *, above_zero: bool = False) -> float:
    number = isinstance(given, int | float) and not isinstance(given, bool)
    if not number or not 0 <= given <= 100 or (above_zero and given == 0):
        raise InvalidInput(place, f"must be a number {'above' if above_zero else 'from'} 0, at most 100")
    return float(given)
