"""PATCH: every cell of the table of fields, for every state in which a job can be patched."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from zq.model.errors import Unprocessable
from zq.model.job import BackoffRule, JobRecord, JobSettings, Retention
from zq.model.lifecycle import MOVES, Move, Status
from zq.model.patching import UNSET, Patch, RetentionPatch, patched, refuse_terminal

NOW = 1_750_000_000_000
PAST, FUTURE, LATER = NOW - 1_000, NOW + 1_000, NOW + 2_000
S = Status
PATCHABLE = [S.SCHEDULED, S.READY, S.IN_FLIGHT]

ALL_SET = JobSettings(
    retry_limit=3,
    backoff=BackoffRule(2.0, 100, 5),
    retention=Retention(completed_ms=11, dead_ms=22),
)


def job(
    status: Status, options: JobSettings | None = ALL_SET, ready_at: int | None = None
) -> JobRecord:
    held = status is S.IN_FLIGHT
    if ready_at is None:
        ready_at = FUTURE if status is S.SCHEDULED else PAST
    return JobRecord(
        key=16,
        queue="q",
        type="t",
        priority=7,
        status=status,
        ready_at=ready_at,
        payload_size=2,
        payload="{}",
        attempts=1,
        deliveries=2,
        holder=9 if held else None,
        dequeued_at=PAST,
        failed_at=PAST,
        finished_at=None,
        purge_at=None,
        options=options,
        unique_key=None,
        unique_while=None,
    )


def changes(before: JobRecord, patch: Patch) -> dict[str, object]:
    """The fields that the patch changed, with their new values."""
    after = patched(before, patch, NOW, NOW, None)
    return {
        field: getattr(after, field)
        for field in before.__struct_fields__
        if getattr(after, field) != getattr(before, field)
    }


@pytest.mark.parametrize("status", PATCHABLE)
def test_an_empty_patch_keeps_everything(status: Status) -> None:
    assert changes(job(status), Patch()) == {}
    assert changes(job(status, None), Patch()) == {}


@pytest.mark.parametrize("status", PATCHABLE)
def test_queue_and_priority_change_alone_in_any_unfinished_state(status: Status) -> None:
    assert changes(job(status), Patch(queue="other")) == {"queue": "other"}
    assert changes(job(status), Patch(priority=0)) == {"priority": 0}


@pytest.mark.parametrize(
    ("status", "ready_at", "expected"),
    [
        (S.SCHEDULED, None, {"status": S.READY, "ready_at": NOW}),
        (S.SCHEDULED, PAST, {"status": S.READY, "ready_at": PAST}),
        (S.SCHEDULED, NOW, {"status": S.READY, "ready_at": NOW}),
        (S.SCHEDULED, LATER, {"ready_at": LATER}),
        (S.READY, None, {}),
        (S.READY, 5, {"ready_at": 5}),
        (S.READY, NOW, {"ready_at": NOW}),
        (S.READY, LATER, {"status": S.SCHEDULED, "ready_at": LATER}),
        (S.IN_FLIGHT, None, {}),
        (S.IN_FLIGHT, 5, {"ready_at": 5}),
        (S.IN_FLIGHT, LATER, {"ready_at": LATER}),
    ],
)
def test_ready_at_decides_between_scheduled_and_ready(
    status: Status, ready_at: int | None, expected: dict[str, object]
) -> None:
    assert changes(job(status), Patch(ready_at=ready_at)) == expected


def test_a_scheduled_job_that_is_overdue_stays_scheduled_unless_ready_at_is_patched() -> None:
    overdue = job(S.SCHEDULED, ready_at=PAST)
    assert changes(overdue, Patch(priority=1)) == {"priority": 1}


def options_after(patch: Patch, options: JobSettings | None = ALL_SET) -> JobSettings | None:
    return patched(job(S.READY, options), patch, NOW, NOW, None).options


def test_retry_limit_is_set_or_returned_to_the_default() -> None:
    assert options_after(Patch(retry_limit=0), None) == JobSettings(retry_limit=0)
    assert options_after(Patch(retry_limit=9)) == msgspec.structs.replace(ALL_SET, retry_limit=9)
    assert options_after(Patch(retry_limit=None)) == msgspec.structs.replace(
        ALL_SET, retry_limit=None
    )


def test_backoff_is_replaced_as_a_whole_or_returned_to_the_default() -> None:
    new = BackoffRule(0.0, 1, 2)
    assert options_after(Patch(backoff=new), None) == JobSettings(backoff=new)
    assert options_after(Patch(backoff=new)) == msgspec.structs.replace(ALL_SET, backoff=new)
    assert options_after(Patch(backoff=None)) == msgspec.structs.replace(ALL_SET, backoff=None)


BOTH = Retention(completed_ms=11, dead_ms=22)


@pytest.mark.parametrize(
    ("old", "patch", "new"),
    [
        (BOTH, UNSET, BOTH),
        (BOTH, None, None),
        (None, None, None),
        (BOTH, RetentionPatch(), BOTH),
        (None, RetentionPatch(), None),
        (BOTH, RetentionPatch(completed_ms=1), Retention(1, 22)),
        (BOTH, RetentionPatch(dead_ms=0), Retention(11, 0)),
        (BOTH, RetentionPatch(completed_ms=None), Retention(None, 22)),
        (BOTH, RetentionPatch(completed_ms=None, dead_ms=5), Retention(None, 5)),
        (BOTH, RetentionPatch(completed_ms=None, dead_ms=None), None),
        (Retention(dead_ms=22), RetentionPatch(dead_ms=None), None),
        (None, RetentionPatch(completed_ms=0), Retention(completed_ms=0)),
        (None, RetentionPatch(dead_ms=None), None),
    ],
)
def test_retention_is_merged_field_by_field(
    old: Retention | None, patch: RetentionPatch | None, new: Retention | None
) -> None:
    before = JobSettings(retry_limit=1, retention=old)
    assert options_after(Patch(retention=patch), before) == JobSettings(
        retry_limit=1, retention=new
    )


def test_the_last_option_that_goes_takes_the_options_with_it() -> None:
    assert options_after(Patch(retry_limit=None), JobSettings(retry_limit=1)) is None
    only = JobSettings(retention=Retention(dead_ms=1))
    assert options_after(Patch(retention=RetentionPatch(dead_ms=None)), only) is None
    everything = Patch(retry_limit=None, backoff=None, retention=None)
    assert options_after(everything) is None


@pytest.mark.parametrize("status", PATCHABLE)
def test_a_patch_leaves_the_lease_the_history_and_the_rest_alone(status: Status) -> None:
    patch = Patch(
        queue="z",
        priority=1,
        ready_at=LATER,
        retry_limit=1,
        backoff=BackoffRule(1.0, 1, 1),
        retention=None,
    )
    patchable = {"queue", "priority", "status", "ready_at", "options"}
    assert set(changes(job(status), patch)) <= patchable


@given(
    st.sampled_from(PATCHABLE),
    st.integers(0, 2 * NOW),
    st.none() | st.just(UNSET) | st.integers(0, 2 * NOW),
)
def test_a_patch_makes_only_legal_moves(
    status: Status, ready_at: int, new: int | None | msgspec.UnsetType
) -> None:
    after = patched(job(status, ready_at=ready_at), Patch(ready_at=new), NOW, NOW, None)
    assert after.status in MOVES[Move.PATCH][status]


@pytest.mark.parametrize(("status", "name"), [(S.COMPLETED, "completed"), (S.DEAD, "dead")])
def test_a_finished_job_refuses_every_patch_and_says_which(status: Status, name: str) -> None:
    with pytest.raises(Unprocessable) as refusal:
        refuse_terminal("01ABC", status)
    assert refusal.value.message == f"cannot patch job 01ABC in {name} status"


@pytest.mark.parametrize("status", PATCHABLE)
def test_an_unfinished_job_is_not_refused(status: Status) -> None:
    refuse_terminal("01ABC", status)
