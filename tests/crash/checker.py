"""Judges a history: each rule is a promise of the queue, and yields a sentence for each breach.

The rules never cry wolf: where times leave two orders possible, the harmless one is assumed.
"""

from .history import History
from .rules_jobs import (
    attempts_rise_by_one,
    counts_are_kept,
    deliveries_never_fall,
    nothing_acknowledged_is_lost,
    nothing_done_comes_back,
    nothing_is_held_after_a_start,
    nothing_is_invented,
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
)


def violations(history: History) -> list[str]:
    """What the queue has broken, in words."""
    world = sort(history)
    return [breach for rule in RULES for breach in rule(world)]
