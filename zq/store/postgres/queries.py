"""Loads the named statements of `.sql` files, and binds their parameters.

A statement begins with a line ``-- name: its_name``, and words in braces stand for constants, as in
`zq.store.sqlite.queries`. A parameter is a name behind a colon. What is passed under it may be a
list of rows, or a mapping: `:rows.2` is the list of their third columns, `:map.keys` and
`:map.values` are the lists of its keys and values. So rows go in as arrays, which `unnest` puts
together again. The cast that follows a parameter says in which form it is sent. `::json` and
`::json[]` send values as JSON, all others send texts and numbers as they are.

Each text has one possible plan, whatever the statistics say. A plan is kept while its tables grow,
so one that was made for an empty table has to suit a full one. The settings of `connection.PLANS`
leave PostgreSQL lookups by indexes, and these words take the wrong ones from it:

- ``id = ANY (ARRAY[other.id])`` joins by a key. Behind a plain equality, PostgreSQL would think of
  a merge, for which it reads all of the table in the order of its key.
- ``+status = 2`` is no condition of an index: rows that have been found by their keys are tested.
- ``OFFSET 0`` ends a part that stays a step of its own, for each row before it.
- ``status = ANY (ARRAY[2]) … ORDER BY status, id`` keeps to the index that has this order. Behind a
  plain equality, the order would be that of the ids.
- ``(queue, at) >= (:queue, :at)`` keeps to the index that has both columns in this order.
- ``ctid = ANY (ARRAY(SELECT ctid …))`` deletes rows that have been found by another index.
"""

import re
from collections import ChainMap
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, lru_cache
from typing import Any, NamedTuple

import msgspec

from zq.model.aging import AGES, LAST_AGED
from zq.model.ids import HOLDER_BITS
from zq.model.job import Brief, Extras, JobRecord, JobSettings
from zq.model.lifecycle import Status
from zq.model.unique import KeySpace, Scope
from zq.rooms import ROOMS, parts
from zq.store.postgres.connection import Connection
from zq.store.postgres.owning import KEY_CLASS, LOCK_CLASS, WATCHED
from zq.store.postgres.texts import sent
from zq.store.texts import SHARED, columns_of, named_texts, texts_of_rooms

_DIFFERENT = {
    "key": "id",
    "group": "group_id",
    "options": "options::text",
    "extras": "extras::text",
    "batched": "(extras -> 'batch' ->> 'key' IS NOT NULL)::integer",
}
"""Columns of jobs that differ from the names of their fields."""


def columns(struct: type[msgspec.Struct], *, required: bool = False, **different: str) -> str:
    """The columns of jobs that make a struct: `columns_of`, with those that differ here."""
    return columns_of(struct, _DIFFERENT | different, "jobs.{}", required=required)


_AGING_MS = "(SELECT s.aging_ms FROM queue_settings AS s WHERE s.queue = jobs.queue)"

_CONSTANTS = {
    **SHARED,
    "holder_bits": str(HOLDER_BITS),
    "lock_class": str(LOCK_CLASS),
    "key_class": str(KEY_CLASS),
    "watched": str(WATCHED),
    "job_row": columns(JobRecord, key="jobs.id"),
    "brief_row": columns(Brief, key="jobs.id"),
    "line_row": (
        "lines.id, queue, fair_key, draws, priority, urgency, head, place, ("
        f"SELECT jobs.id FROM jobs WHERE line = lines.id AND status = {Status.READY.value}"
        " AND held = 2 AND jobs.id > lines.head ORDER BY jobs.id LIMIT 1)"
    ),
    "line_fair_key": "coalesce('=' || (options ->> 'fair_key'), '')",
    "line_draws": "coalesce((options -> 'budgets')::text, '')",
    "line_aging_ms": f"coalesce({_AGING_MS}, 0)",
    "line_priority": (
        f"coalesce({AGES} + jobs.priority + greatest(:ahead::bigint + least(jobs.ready_at,"
        f" CASE jobs.status WHEN {Status.READY.value} THEN :now::bigint ELSE {LAST_AGED} END), 0)"
        f" / {_AGING_MS}, jobs.priority)"
    ),
    "line_urgency": (
        f"CASE WHEN aging_ms > 0 THEN priority - {AGES} - :steady::bigint / aging_ms"
        " ELSE priority END"
    ),
    "has_line": (
        "(coalesce(options ->> 'fair_key', options ->> 'budgets') IS NOT NULL"
        f" OR {_AGING_MS} IS NOT NULL)"
    ),
    "keys": "ANY (:keys::bigint[])",
    "placed": (
        "(SELECT q.key AS queue, k.key AS fair_key, k.value::float8 AS place"
        " FROM json_each(:places::json) AS q CROSS JOIN LATERAL json_each_text(q.value) AS k"
        " OFFSET 0)"
    ),
}


@cache
def constants() -> dict[str, str]:
    """The words in braces and their meanings. Rooms have theirs in `store.py`, for each store."""
    return dict(ChainMap(_CONSTANTS, *[of["postgres"] for of in parts("store", "CONSTANTS", dict)]))


@cache
def load(module: str) -> dict[str, str]:
    """The texts of one file, by name. `zq.store.postgres.tick` has those of its `tick.sql`."""
    return named_texts("postgres", module, constants())


def load_of_rooms() -> dict[str, str]:
    """What rooms have for the tick: see `zq.store.texts`."""
    return texts_of_rooms("postgres", ROOMS, load)


_encode = msgspec.json.Encoder().encode

_PARAMETER = re.compile(r"(?<![:\w]):([a-z_][a-z_0-9]*)(?:\.(\w+))?(?:::(\w+(?:\[\])?))?")


def as_text(value: object) -> str | None:
    """A value as a parameter. What is neither text nor number becomes JSON."""
    if value is None:
        return None
    if isinstance(value, str):
        return sent(value)
    if isinstance(value, (int, float)):
        return str(int(value)) if isinstance(value, int) else repr(value)
    return _encode(value).decode()


def as_array(values: Iterable[object]) -> str:
    return "{" + ",".join(["NULL" if v is None else str(v) for v in values]) + "}"


def as_texts(values: Iterable[str | None]) -> str:
    return "{" + ",".join(["NULL" if v is None else _quoted(sent(v)) for v in values]) + "}"


def as_json(value: object) -> str | None:
    """A value as JSON. What is JSON text already stays as it is."""
    if value is None:
        return value
    return sent(value if isinstance(value, str) else _encode(value).decode())


def as_jsons(values: Iterable[object]) -> str:
    """Values as an array of JSON."""
    return as_texts([None if value is None else _encode(value).decode() for value in values])


_FORMS: dict[str, Callable[[Any], str | None]] = {
    "json": as_json,
    "json[]": as_jsons,
    "text[]": as_texts,
}


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _column(index: int) -> Callable[[Sequence[Sequence[Any]]], list[Any]]:
    def column(rows: Sequence[Any]) -> list[Any]:
        if rows and isinstance(rows[0], msgspec.Struct):
            rows = msgspec.to_builtins(rows)
        return [row[index] for row in rows]

    return column


def _picked(part: str | None) -> Callable[[Any], Any] | None:
    if part is None:
        return None
    if part == "keys":
        return list
    if part == "values":
        return _values
    return _column(int(part))


def _values(mapping: Mapping[Any, Any]) -> list[Any]:
    return list(mapping.values())


class Statement(NamedTuple):
    """A statement with numbered parameters."""

    sql: bytes
    places: tuple[tuple[str, Callable[[Any], Any] | None, Callable[[Any], str | None]], ...]
    """The name of each parameter, the part of it that is sent, and the form in which it is sent."""

    def bound(self, parameters: Mapping[str, Any]) -> list[str | None]:
        """The values of the parameters, in their order."""
        values: list[str | None] = []
        for name, pick, form in self.places:
            value = parameters[name]
            values.append(form(value if pick is None else pick(value)))
        return values


def compiled(sql: str) -> Statement:
    """Number the parameters of a statement."""
    places: dict[tuple[str, str | None, str | None], int] = {}

    def number(found: re.Match[str]) -> str:
        place = (found[1], found[2], found[3])
        nth = places.setdefault(place, len(places) + 1)
        return f"${nth}" + (f"::{found[3]}" if found[3] else "")

    text = _PARAMETER.sub(number, sql)
    return Statement(
        text.encode(), tuple((name, _picked(part), _form(cast)) for name, part, cast in places)
    )


def _form(cast: str | None) -> Callable[[Any], str | None]:
    if cast is None:
        return as_text
    return _FORMS.get(cast) or (as_array if cast.endswith("[]") else as_text)


_compiled = lru_cache(maxsize=256)(compiled)


def rows_of(connection: Connection, sql: str, parameters: Mapping[str, Any]) -> list[Any]:
    """The rows that a query finds, on a connection that is in no pipeline."""
    statement = _compiled(sql)
    values = statement.bound(parameters)
    return connection.execute(statement.sql, values, binary=True).fetchall()


Row = Sequence[Any]

_STATUSES = {status.value: status for status in Status}
_SCOPES = {scope.value: scope for scope in Scope}
_SPACES = {space.value: space for space in KeySpace}

_options = msgspec.json.Decoder(JobSettings).decode
_extras = msgspec.json.Decoder(Extras).decode

_JOB = {name: place for place, name in enumerate(JobRecord.__struct_fields__)}
_STATUS = _JOB["status"]
_OPTIONS, _EXTRAS = _JOB["options"], _JOB["extras"]
_KEY, _WHILE, _IN = _JOB["unique_key"], _JOB["unique_while"], _JOB["unique_in"]

_BRIEF = {name: place for place, name in enumerate(Brief.__struct_fields__)}
_OF_BRIEF = [_BRIEF[name] for name in ("status", "options", "unique_while", "unique_key")]


def jobs_of(rows: Iterable[Row]) -> list[JobRecord]:
    """The jobs in rows with the columns of `JobRecord`."""
    return [_job(list(row)) for row in rows]


def briefs_of(rows: Iterable[Row]) -> list[Brief]:
    """The briefs in rows with the columns of `Brief`."""
    return [_brief(list(row)) for row in rows]


def _job(values: list[Any]) -> JobRecord:
    values[_STATUS] = _STATUSES[values[_STATUS]]
    values[_IN] = _SPACES[values[_IN]]
    if values[_OPTIONS] is not None:
        values[_OPTIONS] = _options(values[_OPTIONS])
    if values[_EXTRAS] is not None:
        values[_EXTRAS] = _extras(values[_EXTRAS])
    if values[_KEY] is not None:
        values[_WHILE] = _SCOPES[values[_WHILE]]
    return JobRecord(*values)


def _brief(values: list[Any]) -> Brief:
    status, options, scope, key = _OF_BRIEF
    values[status] = _STATUSES[values[status]]
    if values[options] is not None:
        values[options] = _options(values[options])
    if values[key] is not None:
        values[scope] = _SCOPES[values[scope]]
    return Brief(*values)
