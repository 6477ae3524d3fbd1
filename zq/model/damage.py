"""The report of rows that cannot be read."""

from collections.abc import Sequence
from typing import NamedTuple


class Misfit(NamedTuple):
    """A row that was set aside: its table, its key there, why, and when (milliseconds)."""

    source: str
    key: str
    reason: str
    at: int


class Quarantined(NamedTuple):
    """All rows that were set aside: their number, and the latest of them."""

    rows: int
    latest: Sequence[Misfit]
