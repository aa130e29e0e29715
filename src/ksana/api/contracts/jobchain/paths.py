"""Paths of documents 000 and 001."""

import re
from typing import Annotated

from fastapi import Path

from ksana.api.contracts.segments import segment
from ksana.domain.ids import LARGEST_INTEGER

JOBS = "/api/v1/jobs"
JOB = f"{JOBS}/{segment('jobId')}"
WORKFLOWS = "/api/v1/workflows"
WORKFLOW = f"{WORKFLOWS}/{segment('workflowId')}"
CHAINS = "/api/v1/chains"
CHAIN = f"{CHAINS}/{segment('chainId')}"
RUNS = "/api/v1/runs"
RUN = f"{RUNS}/{segment('runId')}"
NODES = f"{RUN}/nodes"
NODE = f"{NODES}/{segment('nodeId')}"

OF_WORKFLOW_RUNS = re.compile(
    r"[/:](?![0-9]+(?:/(?:cancel|explain|logs))?(?:\?|$)).+"  # not a task's run, which has a number
    r"|\?(?:.*&)?(?:workflowId|size)=.*",  # nor a list in document 003's words
    re.DOTALL,
)
"""What follows `/api/v1/runs` where document 001's words are spoken. Documents 001 and 003 share that path."""

JobId = Annotated[str, Path(alias="jobId", description="The job's id; the integer of document 003 is taken, too.")]
WorkflowId = Annotated[str, Path(alias="workflowId", description="The workflow's id.")]
ChainId = Annotated[str, Path(alias="chainId", description="The chain's id, which is the workflow's.")]
RunId = Annotated[str, Path(alias="runId", description="The workflow run's id.")]
NodeId = Annotated[str, Path(alias="nodeId", description="The node's id; `load[3]` for an item of a node `load`.")]
VersionNumber = Annotated[int, Path(ge=1, le=LARGEST_INTEGER)]
