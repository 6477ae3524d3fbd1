"""Makes jobs from the rows that statements return."""

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from zq.model.job import Brief, Extras, JobRecord, JobSettings
from zq.model.lifecycle import Status
from zq.model.unique import KeySpace, Scope

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
