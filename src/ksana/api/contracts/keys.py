"""Ids as they stand in paths and bodies. One that nothing can have is not found; it is never an error of its own."""

from ksana.domain.errors import InvalidInput, NotFound
from ksana.domain.ids import KEY_LENGTH, LARGEST_INTEGER, checked_key
from ksana.domain.job import Job
from ksana.domain.ledger import Schedule
from ksana.store.base import Store

_DIGITS = len(str(LARGEST_INTEGER))


async def found_job(store: Store, text: str) -> Job:
    """The job with that key; digits alone are the store's integer, which no key can be. NotFound."""
    if text.isascii() and text.isdigit():
        if len(text) > _DIGITS:
            raise NotFound("job", _echo(text))
        return await store.job(int(text))
    return await store.job_by_key(_possible("job", text))


async def found_schedule(store: Store, text: str) -> Schedule:
    """The schedule with that key. NotFound."""
    return await store.schedule_by_key(_possible("schedule", text))


def _possible(kind: str, text: str) -> str:
    try:
        return checked_key(text)
    except InvalidInput:
        raise NotFound(kind, _echo(text)) from None


def _echo(text: str) -> str:
    """What was asked for, as far as it can be repeated: half a character cannot be written at all."""
    return text[:KEY_LENGTH].encode("ascii", "backslashreplace").decode()
