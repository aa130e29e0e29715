"""Ids: time-ordered keys of ours, and which ones a client may choose."""

import uuid
from datetime import UTC, datetime, timedelta

import pytest

from ksana.domain.errors import InvalidInput
from ksana.domain.ids import checked_key, new_key

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def test_a_new_key_is_a_version_7_uuid_of_its_instant() -> None:
    key = uuid.UUID(new_key(NOW, b"\xff" * 10))
    assert key.version == 7
    assert key.variant == uuid.RFC_4122
    assert key.int >> 80 == int(NOW.timestamp() * 1000)


def test_keys_sort_by_time() -> None:
    keys = [new_key(NOW + timedelta(milliseconds=step)) for step in range(100)]
    assert keys == sorted(keys)


def test_keys_of_one_instant_differ() -> None:
    assert len({new_key(NOW) for _ in range(1_000)}) == 1_000


@pytest.mark.parametrize(
    "key", ["a", "order-notify", "A.b_c~d-9", "0a", "x" * 64, "0190a8f4-1c2d-7e3f-8a4b-5c6d7e8f9a0b"]
)
def test_a_client_may_choose_what_fits_a_path(key: str) -> None:
    assert checked_key(key) == key


@pytest.mark.parametrize("key", ["", " ", "a b", "a/b", "-a", "~1", ".", "é", "x" * 65, "a\n", "%2f"])
def test_what_does_not_fit_a_path_is_refused_by_name(key: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        checked_key(key, field="runId")
    assert refused.value.field == "runId"


def test_a_number_is_refused_because_numbers_are_ours() -> None:
    with pytest.raises(InvalidInput, match="must not be a number"):
        checked_key("42")
