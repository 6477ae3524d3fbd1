"""Unique keys: the table of owners that block a new job."""

import pytest

from zq.model.lifecycle import Status
from zq.model.unique import BY_NAME, COVERS, NAMES, Scope

S = Status

# Incoming scope → the owner's states that make the newcomer a duplicate.
BLOCKED_BY = {
    "queued": {S.SCHEDULED, S.READY},
    "active": {S.SCHEDULED, S.READY, S.IN_FLIGHT},
    "exists": {S.SCHEDULED, S.READY, S.IN_FLIGHT, S.COMPLETED, S.DEAD},
}


@pytest.mark.parametrize("name", BLOCKED_BY)
@pytest.mark.parametrize("status", Status)
def test_each_scope_covers_its_span_of_a_jobs_life(name: str, status: Status) -> None:
    assert (status in COVERS[BY_NAME[name]]) == (status in BLOCKED_BY[name])


def test_a_cancelled_or_expired_job_owns_nothing() -> None:
    assert not any(span & {S.CANCELLED, S.EXPIRED} for span in COVERS.values())


def test_every_scope_is_in_every_table() -> None:
    assert set(COVERS) == set(Scope)
    assert set(BY_NAME) == set(BLOCKED_BY)
    assert {BY_NAME[name]: name for name in BY_NAME} == NAMES


def test_the_stored_numbers_never_change() -> None:
    assert {scope.name: scope.value for scope in Scope} == {"QUEUED": 0, "ACTIVE": 1, "EXISTS": 2}
