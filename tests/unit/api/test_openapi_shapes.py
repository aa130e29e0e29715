"""The description refers only to what it has."""

from pydantic import BaseModel

from ksana.api.openapi import answer_of, with_shapes


class _Inner(BaseModel):
    name: str


class _Outer(BaseModel):
    parts: list[_Inner]


def test_an_answer_brings_what_it_is_made_of() -> None:
    answers = {"200": answer_of(_Outer, "parts")}
    document = with_shapes({"paths": {"/parts": {"get": {"responses": answers}}}})
    shapes = document["components"]["schemas"]
    assert set(shapes) == {"_Inner", "_Outer"}
    assert shapes["_Outer"]["properties"]["parts"]["items"] == {"$ref": "#/components/schemas/_Inner"}
    assert "$defs" not in shapes["_Outer"]
