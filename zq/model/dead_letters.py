"""The dead-letter queue of a dying job, and failures that kill it before its limit. Pure rules.

The job's own settings come before those of its queue. A job with a dead-letter queue of its own has
a single attempt there: its next failure is its last.
"""

from typing import NamedTuple

from zq.model.job import JobSettings, Reason
from zq.model.settings import QueueSettings


class DeadLetter(NamedTuple):
    """The queue that a dying job moves to, if there is one, and after how many failures.

    `after` of None means whenever the job dies, 0 means never.
    """

    queue: str | None = None
    after: int | None = None


def dead_letter_of(options: JobSettings | None, settings: QueueSettings) -> DeadLetter:
    """The rule for a job of a queue with these settings."""
    if options is not None and options.dead_letter is not None:
        return DeadLetter(options.dead_letter, options.dead_letter_after)
    return DeadLetter(settings.dead_letter, settings.dead_letter_after)


def is_last_failure(letter: DeadLetter, queue: str, failures: int) -> bool:
    """True if a job in a queue dies of this many failures, whatever its limit is."""
    if letter.queue is None:
        return False
    return letter.queue == queue or bool(letter.after and failures >= letter.after)


def grave_of(letter: DeadLetter, queue: str, failures: int, reason: Reason) -> str | None:
    """The queue that a job dying in `queue` moves to; None if it is dead where it is."""
    if letter.queue == queue or letter.after == 0:
        return None
    if reason is Reason.EXHAUSTED and failures < (letter.after or 0):
        return None
    return letter.queue
