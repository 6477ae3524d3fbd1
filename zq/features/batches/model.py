"""Batches: new jobs fold into a waiting host, by the programs that came with the host.

A job with a `BatchRule` folds into the open host of its key, or becomes the host. jq computes a
fold outside of the transaction, from the host of that moment. So an enqueue brings a `BatchPlan`,
which names that host and its revision. The tick applies the plan only if these are still the same.
"""

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
