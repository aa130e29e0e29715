"""Paths of document 001. An order is a suffix of its resource's own segment: `/api/v1/jobs/{jobId}:enable`.

So an id ends at a colon, which no id has: `{jobId:id}`. Then `GET …:enable` finds only the order, which does not take it (405),
an unknown order finds nothing (404), and in which order routes are added does not matter.
"""

from typing import Annotated

from fastapi import Path
from starlette.convertors import StringConvertor, register_url_convertor

JOBS = "/api/v1/jobs"
JOB = f"{JOBS}/{{jobId:id}}"

JobId = Annotated[str, Path(alias="jobId", description="The job's id; the integer of document 003 is taken, too.")]


class IdConvertor(StringConvertor):
    """A segment of a path up to its colon."""

    regex = "[^/:]+"


register_url_convertor("id", IdConvertor())
