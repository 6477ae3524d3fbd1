"""Judges a history: each rule is a promise of the queue, and yields a sentence for each breach.

The rules never cry wolf: where times leave two orders possible, the harmless one is assumed.
"""

from .history import History
from .rules_endings import (
    claims_survive,
    extensions_are_as_long_as_asked,
    holders_are_heard,
    jobs_die_of_enough_stalls,
    paused_queues_deliver_nothing,
    results_are_kept,
    stale_tokens_settle_nothing,
    the_cancelled_stay_cancelled,
    the_expired_are_not_delivered,
)
from .rules_groups import a_name_makes_one_job, groups_are_in_order, groups_have_one_at_a_time
from .rules_jobs import (
    attempts_rise_by_one,
    counts_are_kept,
    deliveries_never_fall,
    nothing_acknowledged_is_lost,
    nothing_done_comes_back,
    nothing_is_held_after_a_start,
    nothing_is_invented,
)
from .rules_queues import (
    concurrency_is_kept,
    depth_is_kept,
    moves_have_a_cause,
    rate_is_kept,
    the_dead_move,
    the_redriven_are_back,
    the_retried_are_back,
)
from .rules_sharing import (
    a_held_key_is_refused,
    first_in_first_out,
    one_holder_at_a_time,
    one_owner_of_a_key,
    the_limit_is_kept,
    windows_are_kept,
)
from .world import Rule, sort

RULES: tuple[Rule, ...] = (
    nothing_acknowledged_is_lost,
    nothing_done_comes_back,
    nothing_is_invented,
    attempts_rise_by_one,
    deliveries_never_fall,
    nothing_is_held_after_a_start,
    counts_are_kept,
    one_holder_at_a_time,
    first_in_first_out,
    windows_are_kept,
    the_limit_is_kept,
    one_owner_of_a_key,
    a_held_key_is_refused,
    groups_are_in_order,
    groups_have_one_at_a_time,
    stale_tokens_settle_nothing,
    holders_are_heard,
    extensions_are_as_long_as_asked,
    claims_survive,
    the_cancelled_stay_cancelled,
    results_are_kept,
    the_expired_are_not_delivered,
    jobs_die_of_enough_stalls,
    paused_queues_deliver_nothing,
    a_name_makes_one_job,
    concurrency_is_kept,
    rate_is_kept,
    depth_is_kept,
    moves_have_a_cause,
    the_dead_move,
    the_redriven_are_back,
    the_retried_are_back,
)


def violations(history: History) -> list[str]:
    """What the queue has broken, in words."""
    world = sort(history)
    return [breach for rule in RULES for breach in rule(world)]
