"""Entries whose schedule cannot be evaluated here: a zone went, or another version wrote it."""

from collections.abc import Sequence
from typing import NamedTuple

from zq.features.crons.model_expression import parsed, zone_named
from zq.model.errors import InvalidRequest


class FaultyEntry(NamedTuple):
    """An entry that is set aside, and why."""

    group: str
    entry: str
    reason: str


class FaultyEntries(NamedTuple):
    """How many entries are set aside, and some of them by name."""

    entries: int
    named: Sequence[FaultyEntry]


NONE_FAULTY = FaultyEntries(0, ())


def fault_of(expression: str, zone: str | None) -> str | None:
    """Why a stored schedule cannot be evaluated; None if it can."""
    try:
        parsed(expression)
        if zone is not None:
            zone_named(zone)
    except InvalidRequest as error:
        return error.message
    return None
