"""The parameters of a function, from its annotations: what a job may give, and what the function then gets."""

import inspect
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, get_type_hints

from pydantic import TypeAdapter, ValidationError
from pydantic.errors import PydanticUserError

from ksana.domain.errors import InvalidInput
from ksana.functions import Function, LightContext, NodeContext

CONTEXT_NAME = "context"


@dataclass(frozen=True, slots=True)
class Parameter:
    adapter: TypeAdapter[Any]
    required: bool


@dataclass(frozen=True, slots=True)
class Signature:
    """`of` reads it from a function. A parameter without annotation takes any JSON."""

    context: str | None
    """The name of the first parameter, if that takes the context."""
    parameters: Mapping[str, Parameter]
    open: bool
    """Whether it takes names that it does not list (`**more`)."""

    @classmethod
    def of(cls, function: Function) -> "Signature":
        """TypeError if no job could give what it wants: a type without JSON, positional parameters, the wrong context."""
        try:
            hints = get_type_hints(function.call, include_extras=True)
        except NameError as error:
            raise TypeError(f"function {function.name}: {error}") from error
        declared = list(inspect.signature(function.call).parameters.values())
        context = _context(function, declared, hints)
        own = [part for part in declared if part.name != context]
        return cls(
            context,
            {part.name: _parameter(function, part, hints) for part in own if part.kind is not part.VAR_KEYWORD},
            any(part.kind is part.VAR_KEYWORD for part in own),
        )

    def converted(self, params: Mapping[str, Any], *, unknown_yet: Collection[str] = ()) -> dict[str, Any]:
        """What the function is called with. InvalidInput names the parameter, as in `params.day`.

        Those whose value is `unknown_yet`, because a template gives it later, are left out.
        """
        for name in params:
            if name not in self.parameters and not self.open:
                known = ", ".join(self.parameters) or "none"
                raise InvalidInput(f"params.{name}", f"the function has no such parameter; there are: {known}")
        found: dict[str, Any] = {}
        for name, parameter in self.parameters.items():
            if name not in params and parameter.required:
                raise InvalidInput(f"params.{name}", "must be given")
            if name in params and name not in unknown_yet:
                found[name] = _converted(parameter.adapter, name, params[name])
        return {**{name: value for name, value in params.items() if name not in self.parameters}, **found}


def _context(function: Function, declared: list[inspect.Parameter], hints: Mapping[str, Any]) -> str | None:
    if not declared:
        return None
    first = declared[0]
    annotation = hints.get(first.name)
    if annotation not in (NodeContext, LightContext) and first.name != CONTEXT_NAME:
        return None
    wanted = LightContext if function.light else NodeContext
    if annotation not in (wanted, None):
        raise TypeError(f"function {function.name}: its {first.name} must be a {wanted.__name__}")
    return first.name


def _parameter(function: Function, part: inspect.Parameter, hints: Mapping[str, Any]) -> Parameter:
    if part.kind in (part.POSITIONAL_ONLY, part.VAR_POSITIONAL):
        raise TypeError(f"function {function.name}: parameter {part.name} cannot be given by its name")
    try:
        adapter: TypeAdapter[Any] = TypeAdapter(hints.get(part.name, Any))
    except PydanticUserError as error:
        raise TypeError(f"function {function.name}: no JSON can be made a {part.name}: {error.message}") from error
    return Parameter(adapter, part.default is part.empty)


def _converted(adapter: TypeAdapter[Any], name: str, value: Any) -> Any:
    try:
        return adapter.validate_python(value)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        path = ".".join(str(part) for part in ("params", name, *first["loc"]))
        raise InvalidInput(path, first["msg"]) from error
