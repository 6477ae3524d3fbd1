"""Rows that cannot be read, as they are told of."""

from collections.abc import Sequence
from typing import NamedTuple


class Misfit(NamedTuple):
    """A row that was set aside: its table, its key there, why, and when (milliseconds)."""

    source: str
    key: str
    reason: str
    at: int


class Quarantined(NamedTuple):
    """All that was set aside: how many rows, and the latest of them."""

    rows: int
    latest: Sequence[Misfit]
