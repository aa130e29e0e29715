"""A contract's own words for what went wrong: codes by the kind of thing, and what the id of each kind is called."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ksana.api.errors import Problem
from ksana.domain.errors import IdTaken, KsanaError


@dataclass(frozen=True, slots=True)
class Wording:
    codes: Mapping[tuple[str, str], str]
    """By the domain's code and the kind of thing that it is about; any other code is shown as it is."""
    ids: Mapping[str, str]
    """What the id of each kind is called."""
    kinds: Mapping[str, str] = field(default_factory=dict)
    """Of what kind the `id` is where the details do not say it, by code."""
    statuses: Mapping[str, int] = field(default_factory=dict)
    """Where the contract's is not that of the error's kind, by the contract's code."""

    def translate(self, problem: Problem) -> Problem:
        """The same problem in these words."""
        if problem.status == 500:
            return replace(problem, code=KsanaError.code)
        kind = str(problem.details.get("kind") or self.kinds.get(problem.code))
        if kind not in self.ids:
            return self._with_status(problem)
        code = self.codes.get((problem.code, kind), problem.code)
        return self._with_status(replace(problem, code=code, details=self._details(problem, kind)))

    def _with_status(self, problem: Problem) -> Problem:
        return replace(problem, status=self.statuses.get(problem.code, problem.status))

    def _details(self, problem: Problem, kind: str) -> dict[str, Any]:
        """Without `kind`, which the code tells; ids are texts here."""
        details = {name: value for name, value in problem.details.items() if name not in {"kind", "id"}}
        if "id" in problem.details:
            details[self.ids[kind]] = str(problem.details["id"])
        if problem.code == IdTaken.code:
            details["field"] = self.ids[kind]
        return details
