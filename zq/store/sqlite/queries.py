"""Loads the named queries of `.sql` files: those of the core beside this module, and the rooms'.

A query begins with a line ``-- name: its_name``; comment lines after that describe it. Words in
braces stand for constants of the model (``{ready}`` is the number of a status) and for lists of
columns. These lists follow from the structs that are read.
"""

from functools import cache
from importlib.resources import files

import msgspec

from zq.doors.topics.model import MAX_SEQ, MAX_TOPIC_ID, SEQ_BITS
from zq.features.history.model import StoredAttempt
from zq.model.ids import EPOCH_MS, LOW_BITS
from zq.model.job import INLINE_PAYLOAD, Brief, JobRecord
from zq.model.lifecycle import Status
from zq.model.unique import KeySpace, Scope
from zq.rooms import ROOMS

_DIFFERENT = {
    "key": "id",
    "group": "group_id",
    "options": "json(options)",
    "extras": "json(extras)",
    "batched": "extras ->> '$.batch.key' IS NOT NULL",
}
"""Columns of jobs that differ from the names of their fields."""

_OF_ATTEMPT = {
    "attempt": "attempts + 1",
    # A job that waits has not begun.
    "dequeued_at": f"iif(status = {Status.IN_FLIGHT.value}, dequeued_at, NULL)",
    "worker": "ifnull(claimant, holder)",
    "payload_bytes": "payload_size",
}


def columns(struct: type[msgspec.Struct], *, required: bool = False, **different: str) -> str:
    """The columns of jobs that make a struct, in the order of its fields.

    With `required`, only the fields without a default are read.
    """
    names = _DIFFERENT | different
    fields = [field for field in msgspec.structs.fields(struct) if field.required or not required]
    return ", ".join(names.get(field.name, field.name) for field in fields)


NEW_JOB_COLUMNS = f"{columns(JobRecord, required=True)}, checksum"
"""The columns that differ among new jobs without special settings: half the cost of all."""

JOB_COLUMNS = columns(JobRecord)

_USUAL = "coalesce(options, unique_key, group_id, expires_at, extras, finished_at, ttl_ms) IS NULL"

JOB_ROW = (
    f"CASE WHEN deliveries = 0 AND {_USUAL}"
    f" THEN json_array({NEW_JOB_COLUMNS}) ELSE json_array({JOB_COLUMNS}) END"
)
BRIEF_ROW = (
    f"CASE WHEN status = {Status.IN_FLIGHT.value} AND attempts = 0 AND options IS NULL"
    f" AND unique_while IS NULL AND group_id IS NULL AND payload_size <= {INLINE_PAYLOAD}"
    f" THEN json_array({columns(Brief, required=True)}) ELSE json_array({columns(Brief)}) END"
)

TOPIC_ROW = (
    "json_array(id, name, json(config), head_seq, count, bytes, cap_floor, ttl_floor, last_at,"
    " trim_at, ifnull((SELECT key FROM topic_records"
    f" WHERE key > topics.id << {SEQ_BITS} AND key <= topics.id << {SEQ_BITS} | {MAX_SEQ}"
    f" ORDER BY key LIMIT 1) & {MAX_SEQ}, head_seq + 1), dead_lettered)"
)
"""The columns of a topic in the order of the fields of `TopicState`."""

USER_ROW = (
    "json_object('id', id, 'name', name, 'hash', hash, 'created_at', created_at,"
    " 'is_admin', json(iif(is_admin, 'true', 'false')), 'updated_at', updated_at, 'grants',"
    " (SELECT json_group_array(json_object('id', g.id, 'action', g.action, 'pattern', g.pattern,"
    " 'created_at', g.created_at, 'group', g.group_id)) FROM (SELECT * FROM user_grants"
    " WHERE user = users.id ORDER BY created_at) AS g))"
)
"""A user with its grants, by the names of the fields of `User`."""

_SEARCHED = (
    "lower(type || char(10) || iif(attempts = 0, '', ifnull((SELECT message FROM errors"
    " WHERE job_id = id ORDER BY attempt DESC LIMIT 1), '')) || char(10)"
    " || ifnull(payload, ifnull((SELECT body FROM payloads WHERE job_id = id), '')))"
)
"""The text of a job in which words are looked for."""

_CONSTANTS = {
    **{status.name.lower(): str(status.value) for status in Status},
    **{f"while_{scope.name.lower()}": str(scope.value) for scope in Scope},
    **{f"in_{space.name.lower()}": str(space.value) for space in KeySpace},
    "job_columns": JOB_COLUMNS,
    "job_row": JOB_ROW,
    "brief_row": BRIEF_ROW,
    "topic_row": TOPIC_ROW,
    "user_row": USER_ROW,
    "seq_bits": str(SEQ_BITS),
    "max_seq": str(MAX_SEQ),
    "max_topic_id": str(MAX_TOPIC_ID),
    "attempt_columns": columns(StoredAttempt, required=True, **_OF_ATTEMPT),
    "key_bits": str(LOW_BITS),
    "key_epoch": str(EPOCH_MS),
    "keys": "(SELECT value FROM json_each(:keys))",
    "searched": _SEARCHED,
    "no_lease": "holder = NULL, claimant = NULL, lease_until = NULL",
}


@cache
def load(module: str) -> dict[str, str]:
    """The queries of one file, by name. `zq.store.sqlite.tick` has those of its `tick.sql`."""
    package, _, name = module.rpartition(".")
    text = files(package).joinpath(f"{name}.sql").read_text(encoding="utf-8")
    queries: dict[str, str] = {}
    for block in text.split("-- name: ")[1:]:
        name, _, body = block.partition("\n")
        lines = [line for line in body.splitlines() if not line.lstrip().startswith("--")]
        queries[name.strip()] = "\n".join(lines).strip().format_map(_CONSTANTS)
    return queries


def load_of_rooms() -> dict[str, str]:
    """The statements that rooms have for the tick: in `sqlite_tick.sql` and `sqlite_tick_….sql`."""
    queries: dict[str, str] = {}
    for room in ROOMS:
        for file in sorted(each.name for each in files(room).iterdir()):
            if file.startswith("sqlite_tick") and file.endswith(".sql"):
                queries |= load(f"{room}.{file.removesuffix('.sql')}")
    return queries
