"""Loads the named queries of the `.sql` files beside this module.

A query begins with a line ``-- name: its_name``; comment lines after that describe it. Words in
braces stand for constants of the model (``{ready}`` is the number of a status) and for the column
lists below, so that each is written once.
"""

from functools import cache
from importlib.resources import files

from zq.model.ids import EPOCH_MS, LOW_BITS
from zq.model.job import INLINE_PAYLOAD
from zq.model.lifecycle import Status
from zq.model.unique import Scope

NEW_JOB_COLUMNS = "id, queue, type, priority, status, ready_at, payload_size, payload"
JOB_COLUMNS = (
    f"{NEW_JOB_COLUMNS}, attempts, deliveries, holder, dequeued_at, failed_at, finished_at,"
    " purge_at, json(options), unique_key, unique_while, group_id, expires_at, lease_until,"
    " claimant, stalls, forgiven, json(extras), result_size, result"
)
"""In the order of `zq.model.job.Job`'s fields. A job that waits for the first time and sets nothing
unusual is told by the first eight, at half the cost."""

_USUAL = "coalesce(options, unique_key, group_id, expires_at, extras, finished_at) IS NULL"

USUAL_BRIEF_COLUMNS = "id, queue, holder"
BRIEF_COLUMNS = (
    f"{USUAL_BRIEF_COLUMNS}, status, attempts, json(options), unique_while, payload_size,"
    " result_size, group_id, unique_key"
)
"""In the order of `zq.store.work.Brief`'s fields; the first three tell the usual job in flight."""

ATTEMPT_COLUMNS = (
    "id, queue, type, attempts + 1, ready_at,"
    f" iif(status = {Status.IN_FLIGHT.value}, dequeued_at, NULL), ifnull(claimant, holder),"
    " payload_size, priority"
)
"""In the order of `zq.wire.history.Attempt`'s fields. A job that waits has not begun."""

JOB_ROW = (
    f"CASE WHEN deliveries = 0 AND {_USUAL}"
    f" THEN json_array({NEW_JOB_COLUMNS}) ELSE json_array({JOB_COLUMNS}) END"
)
BRIEF_ROW = (
    f"CASE WHEN status = {Status.IN_FLIGHT.value} AND attempts = 0 AND options IS NULL"
    f" AND unique_while IS NULL AND group_id IS NULL AND payload_size <= {INLINE_PAYLOAD}"
    f" THEN json_array({USUAL_BRIEF_COLUMNS}) ELSE json_array({BRIEF_COLUMNS}) END"
)

_CONSTANTS = {
    **{status.name.lower(): str(status.value) for status in Status},
    **{f"while_{scope.name.lower()}": str(scope.value) for scope in Scope},
    "job_columns": JOB_COLUMNS,
    "job_row": JOB_ROW,
    "brief_row": BRIEF_ROW,
    "attempt_columns": ATTEMPT_COLUMNS,
    "key_bits": str(LOW_BITS),
    "key_epoch": str(EPOCH_MS),
    "keys": "(SELECT value FROM json_each(:keys))",
    "no_lease": "holder = NULL, claimant = NULL, lease_until = NULL",
}


@cache
def load(file: str) -> dict[str, str]:
    """The queries of one file by name."""
    text = files("zq.store").joinpath(file).read_text(encoding="utf-8")
    queries: dict[str, str] = {}
    for block in text.split("-- name: ")[1:]:
        name, _, body = block.partition("\n")
        lines = [line for line in body.splitlines() if not line.lstrip().startswith("--")]
        queries[name.strip()] = "\n".join(lines).strip().format_map(_CONSTANTS)
    return queries
