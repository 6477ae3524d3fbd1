"""Batches: new jobs that fold into one that waits, by programs that came with that one.

A job that brings a `BatchRule` folds into the open host of its key, or becomes the host. What a
fold gives is found by jq outside of the transaction, from the host as it was. So an enqueue brings
a `BatchPlan`, which says what it was found from; the tick takes it where that still holds.
"""

from collections.abc import Mapping

import msgspec


class BatchRule(msgspec.Struct, frozen=True):
    """The batch that a job belongs to, and how others join it.

    `when` and `fold` are jq programs over `$existing`, the host's payload, and `$new`: whether a
    new job folds into this one, and the payload of both.
    """

    key: str
    when: str
    fold: str


class HostPlace(msgspec.Struct, frozen=True, array_like=True):
    """Which job hosts a batch, and how many commands have folded jobs into it."""

    host: int
    revision: int


class FoldedPayload(msgspec.Struct, frozen=True, gc=False):
    """The payload of a host after a fold: JSON text, and its size in bytes."""

    payload: str
    payload_size: int


class BatchPlan(msgspec.Struct, frozen=True):
    """What becomes of an enqueue's jobs in batches, if all is still as it was found.

    `places` has the open host of each batch that is named, None where there is none. `folds` maps
    the index of a job to the key of the host that it folds into, which may be another job of the
    same command, and `payloads` a host's key to the payload that it has then. `copies` are the
    indexes of jobs that are copies by name, and so do neither.
    """

    places: Mapping[str, HostPlace | None]
    folds: Mapping[int, int]
    payloads: Mapping[int, FoldedPayload]
    copies: frozenset[int] = frozenset()


class StalePlan(msgspec.Struct, frozen=True):
    """A plan does not hold any more, and nothing was done. Whoever made it makes another.

    No client hears of it. `copies` are the indexes of the jobs that are copies by name, where the
    plan did not know of these.
    """

    copies: frozenset[int] | None = None
