"""Priorities that age: the rule by which a job that waits becomes more urgent.

In a queue with the setting `priority_aging_ms`, here A, a job of priority p that became ready at r
gains a step each A milliseconds. Both r and now are steady times, so a clock that is set makes no
job more urgent than another. Steps are counted from their epoch, for all jobs at once:

    urgency now  = p + floor(r / A) - floor(now / A)

The last term is the same for all jobs of a queue. So their order never changes while they wait,
and is an ordinary key: p + floor(r / A), and among equals the id. Urgency may be less than 0. By
it, jobs are compared with those of other queues, as by a priority.

Bound: let u be the most urgent priority that comes to the queue. A job that becomes ready

    D = (p - u + 1) · A

milliseconds after a job of priority p, or later, never comes before it. So, where nothing but the
queue's own jobs keeps workers busy, its wait is at most D, and then the time in which its workers
deliver what is still before it: jobs that became ready before the end of D. If workers keep up with
what arrives, that is the backlog of the moment at which it became ready.
"""

AGES = 65_536
"""Lines of jobs that age have priorities from here on: they are never alike to others."""

LAST_AGED = 2**62
"""Later jobs, which come in no lifetime, count as if they became ready then."""


def line_priority(priority: int, ready_at: int, aging_ms: int) -> int:
    """The part of a job's urgency that does not change while it waits, as its line has it.

    `ready_at` is a steady time.
    """
    return AGES + priority + max(min(ready_at, LAST_AGED), 0) // aging_ms if aging_ms else priority
