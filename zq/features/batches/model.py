"""Batches: new jobs fold into a waiting host, by the programs that came with the host.

A job with a `BatchRule` folds into the open host of its key, or becomes the host. jq computes a
fold outside of the transaction, from the host of that moment. So an enqueue brings a `BatchPlan`,
which names that host and its revision. The tick applies the plan only if these are still the same.
"""

from collections.abc import Mapping

import msgspec

from zq.model.names import check_batch, check_program


class BatchRule(msgspec.Struct, frozen=True):
    """The batch of a job, and the rule by which others join it.

    `when` and `fold` are jq programs over `$existing`, the host's payload, and `$new`. `when` says
    whether a new job folds into this one; `fold` gives the payload of both together.
    """

    key: str
    when: str
    fold: str


def check_rule(rule: BatchRule) -> None:
    """Raise `InvalidRequest` if the key or a program is too long, or the key is empty."""
    check_batch(rule.key)
    check_program("batch.when", rule.when)
    check_program("batch.fold", rule.fold)


class HostPlace(msgspec.Struct, frozen=True, array_like=True):
    """The host of a batch, and how many commands have folded jobs into it."""

    host: int
    revision: int


class FoldedPayload(msgspec.Struct, frozen=True, gc=False):
    """The payload of a host after a fold: JSON text, and its size in bytes."""

    payload: str
    payload_size: int


class BatchPlan(msgspec.Struct, frozen=True):
    """The plan for an enqueue's jobs in batches. It is valid while `places` are up to date.

    `places` has the open host of each batch, or None if there is none. `folds` maps the index of a
    job to the key of its host, which may be another job of the same command. `payloads` maps a
    host's key to its payload after the folds. `copies` are the indexes of jobs that are copies by
    name, which neither fold nor become hosts.
    """

    places: Mapping[str, HostPlace | None]
    folds: Mapping[int, int]
    payloads: Mapping[int, FoldedPayload]
    copies: frozenset[int] = frozenset()


class StalePlan(msgspec.Struct, frozen=True):
    """A plan is no longer valid, and nothing was done. The planner makes another one.

    No client sees this. `copies` are the indexes of the jobs that are copies by name, if the plan
    did not know them.
    """

    copies: frozenset[int] | None = None
