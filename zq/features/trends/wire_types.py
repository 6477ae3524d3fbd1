"""Trends of types as documents for clients."""

import msgspec
from msgspec import UNSET, UnsetType

from zq.features.trends.wire import PercentilesDocument


class TypeDocument(msgspec.Struct, kw_only=True):
    """How jobs of a type of a queue ended in a range of time. `rate` is how many did a second.

    `failed` counts failed attempts, and `failed_share` is their share of all that ended. `run` is
    missing if none has run to its end. The queue `*` with the type `*` stands for the rest.
    """

    queue: str
    type: str
    rate: float
    done: int
    failed: int
    failed_share: float
    run: PercentilesDocument | UnsetType = UNSET


class TypePointDocument(msgspec.Struct, kw_only=True):
    """One step of a type's trend, which begins at `at`."""

    at: int
    done: int
    failed: int
    run: PercentilesDocument | UnsetType = UNSET


class TypesDocument(msgspec.Struct, kw_only=True):
    """The types of a range of time, and how many there are. One type may have its `points`.

    These are steps of `step_ms` each. Of the last one's time `open_ms` have passed.
    """

    range: str
    queue: str | UnsetType = UNSET
    known: int
    types: list[TypeDocument]
    step_ms: int | UnsetType = UNSET
    open_ms: int | UnsetType = UNSET
    points: list[TypePointDocument] | UnsetType = UNSET
