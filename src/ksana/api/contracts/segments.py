"""Ids in paths. An order is a suffix of its resource's own segment: `/api/v1/jobs/{jobId}:enable`.

So an id ends at a colon, which no id has: `{jobId:id}`. Then `GET …:enable` finds only the order, which does not take it (405),
an unknown order finds nothing (404), and in which order routes are added does not matter.
"""

from starlette.convertors import StringConvertor, register_url_convertor


class IdConvertor(StringConvertor):
    """A segment of a path up to its colon."""

    regex = "[^/:]+"


register_url_convertor("id", IdConvertor())


def segment(name: str) -> str:
    """A segment that is this id."""
    return f"{{{name}:id}}"
