"""Loads the named queries of `.sql` files: those of the core beside this module, and the rooms'.

A query begins with a line ``-- name: its_name``; comment lines after that describe it. Words in
braces stand for constants of the model (``{ready}`` is the number of a status) and for lists of
columns. These lists follow from the structs that are read. Rooms add words of their own. Where a
text of every store casts a parameter for PostgreSQL (``:now::bigint``), SQLite takes its value as
it is.
"""

import re
from collections import ChainMap
from functools import cache

import msgspec

from zq.model.aging import AGES, LAST_AGED
from zq.model.job import INLINE_PAYLOAD, Brief, JobRecord
from zq.model.lifecycle import Status
from zq.rooms import ROOMS, parts
from zq.store.texts import SHARED, columns_of, named_texts, texts_of_rooms

_DIFFERENT = {
    "key": "id",
    "group": "group_id",
    "options": "json(options)",
    "extras": "json(extras)",
    "batched": "extras ->> '$.batch.key' IS NOT NULL",
}
"""Columns of jobs that differ from the names of their fields."""


def columns(struct: type[msgspec.Struct], *, required: bool = False, **different: str) -> str:
    """The columns of jobs that make a struct: `columns_of`, with those that differ here."""
    return columns_of(struct, _DIFFERENT | different, required=required)


NEW_JOB_COLUMNS = f"{columns(JobRecord, required=True)}, checksum"
"""The columns that differ among new jobs without special settings: half the cost of all."""

JOB_COLUMNS = columns(JobRecord)

_USUAL = "coalesce(unique_key, group_id, expires_at, extras, finished_at, ttl_ms) IS NULL"

LINED_COLUMNS = JOB_COLUMNS[: JOB_COLUMNS.index(", unique_key")]
"""The columns up to the settings of a job: all that differ among new jobs in lines."""

JOB_ROW = (
    f"CASE WHEN deliveries = 0 AND {_USUAL} AND options IS NULL AND line IS NULL"
    f" THEN json_array({NEW_JOB_COLUMNS}) ELSE json_array({JOB_COLUMNS}) END"
)
LINED_ROW = (
    f"CASE WHEN deliveries = 0 AND {_USUAL}"
    f" THEN json_array({LINED_COLUMNS}) ELSE json_array({JOB_COLUMNS}) END"
)
BRIEF_ROW = (
    f"CASE WHEN status = {Status.IN_FLIGHT.value} AND attempts = 0 AND options IS NULL"
    f" AND unique_while IS NULL AND group_id IS NULL AND payload_size <= {INLINE_PAYLOAD}"
    f" THEN json_array({columns(Brief, required=True)}) ELSE json_array({columns(Brief)}) END"
)

_LINE_ROW = (
    "json_array(id, queue, fair_key, draws, priority, urgency, head, place, ("
    f"SELECT jobs.id FROM jobs WHERE line = lines.id AND status = {Status.READY.value} AND held = 2"
    " AND jobs.id > lines.head ORDER BY jobs.id LIMIT 1))"
)

_NAMES_OF_LINES = {
    "line_fair_key": "ifnull('=' || (options ->> '$.fair_key'), '')",
    "line_draws": "ifnull(options -> '$.budgets', '')",
}

_AGING_MS = "(SELECT s.aging_ms FROM queue_settings AS s WHERE s.queue = jobs.queue)"

_CONSTANTS = {
    **SHARED,
    "job_columns": JOB_COLUMNS,
    "job_row": JOB_ROW,
    "lined_row": LINED_ROW,
    "brief_row": BRIEF_ROW,
    "line_row": _LINE_ROW,
    "open_line_row": (
        "CASE WHEN fair_key = '' THEN"
        f" {_LINE_ROW} ELSE json_array(id, queue, fair_key, draws, priority, urgency, head) END"
    ),
    **_NAMES_OF_LINES,
    "line_aging_ms": f"ifnull({_AGING_MS}, 0)",
    "line_priority": (
        f"ifnull({AGES} + jobs.priority + max(:ahead + min(jobs.ready_at,"
        f" iif(jobs.status = {Status.READY.value}, :now, {LAST_AGED})), 0) / {_AGING_MS},"
        " jobs.priority)"
    ),
    "line_urgency": f"iif(aging_ms > 0, priority - {AGES} - :steady / aging_ms, priority)",
    "has_line": (
        "(ifnull(options ->> '$.fair_key', options -> '$.budgets') IS NOT NULL"
        f" OR {_AGING_MS} IS NOT NULL)"
    ),
    "misnamed": (
        "(lines.queue, lines.fair_key, lines.draws) IS NOT"
        " (jobs.queue, {line_fair_key}, {line_draws})"
    ).format_map(_NAMES_OF_LINES),
    "keys": "(SELECT value FROM json_each(:keys))",
}


_CAST = re.compile(r"(:\w+)::\w+(?:\[\])?")


@cache
def constants() -> dict[str, str]:
    """The words in braces and their meanings. Rooms have theirs in `store.py`, for each store."""
    return dict(ChainMap(_CONSTANTS, *[of["sqlite"] for of in parts("store", "CONSTANTS", dict)]))


@cache
def load(module: str) -> dict[str, str]:
    """The texts of one file, by name. `zq.store.sqlite.tick` has those of its `tick.sql`."""
    texts = named_texts("sqlite", module, constants())
    return {name: _CAST.sub(r"\1", text) for name, text in texts.items()}


def load_of_rooms() -> dict[str, str]:
    """What rooms have for the tick: see `zq.store.texts`."""
    return texts_of_rooms("sqlite", ROOMS, load)
