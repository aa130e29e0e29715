"""What a query string may say, where anything else is refused."""

from typing import Annotated

from fastapi import Query
from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel


class StrictQuery(BaseModel):
    """A query of which every parameter is known."""

    model_config = ConfigDict(extra="forbid", alias_generator=to_camel)


NoQuery = Annotated[StrictQuery, Query()]
"""Of a path that has no parameters."""
