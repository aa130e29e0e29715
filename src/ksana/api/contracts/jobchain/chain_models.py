"""Document 000's bodies of chains (§B1). A chain is a workflow; its dag is a text that holds JSON."""

from typing import Any

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from ksana.api.contracts.jobchain.workflow_models import SUMMARY, Description, Name, Version
from ksana.api.contracts.shapes import ErrorBody, Strict
from ksana.api.contracts.values import Text
from ksana.api.openapi import answer_of

_IGNORED = "Written by Ksana; ignored here, so that a chain that was read can be sent back."
_DAG = '{"nodes": [{"id": "n1", "type": "shell", "cfg": {"cmd": "echo hello"}, "dependsOn": []}]}'
_SUMMARY: dict[str, Any] = {("chainId" if name == "workflowId" else name): value for name, value in SUMMARY.items()}
_EXAMPLE: dict[str, Any] = {"name": "demo-chain", "description": "one node", "dagJson": _DAG}
_CHANGED: dict[str, Any] = {**_EXAMPLE, "name": "renamed-chain", "version": 1}
_TOLD = {
    400: "A value is wrong, the name is taken, or there is no such chain.",
    409: "Not now: somebody changed it first, or it is disabled.",
}


class ChainBody(Strict):
    """CreateChainRequest."""

    model_config = ConfigDict(alias_generator=to_camel, json_schema_extra={"example": _EXAMPLE})

    name: Name
    dag_json: Text = Field(description="A text that holds the dag as JSON.")
    description: Description | None = None
    enabled: bool | None = Field(default=None, description="Null is true.")


class ChainUpdate(Strict):
    """UpdateChainRequest: the whole chain, if it is still at that version."""

    model_config = ConfigDict(alias_generator=to_camel, json_schema_extra={"example": _CHANGED})

    name: Name
    dag_json: Text
    description: Description | None = None
    version: Version
    enabled: bool | None = Field(default=None, description="Null leaves it as it is.")
    chain_id: Any = Field(default=None, description=_IGNORED)
    created_at: Any = Field(default=None, description=_IGNORED)
    updated_at: Any = Field(default=None, description=_IGNORED)


class ChainSummary(BaseModel):
    """ChainSummaryResponse."""

    model_config = ConfigDict(alias_generator=to_camel, json_schema_extra={"example": _SUMMARY})

    chain_id: str
    name: str
    description: str
    enabled: bool
    version: int
    created_at: str
    updated_at: str


class ChainShown(ChainSummary):
    """ChainDetailResponse."""

    model_config = ConfigDict(json_schema_extra={"example": {**_SUMMARY, "dagJson": _DAG}})

    dag_json: str


class ChainsShown(BaseModel):
    """A page of them."""

    page: int
    size: int
    total: int
    items: list[ChainSummary]


class ChainStarted(BaseModel):
    """StartJobResponse."""

    model_config = ConfigDict(alias_generator=to_camel)

    run_id: str


class ChainErrorBody(ErrorBody):
    """Every error, with document 000's `error`, which is the message."""

    error: str


def chain_problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """These error answers, for the `responses` of a route."""
    return {status: answer_of(ChainErrorBody, _TOLD[status]) for status in statuses}
