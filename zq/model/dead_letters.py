"""Where a job goes that dies, and when it dies of failures that its limit would let pass. Pure.

What a job says itself counts before what its queue says. A job that names its own dead-letter queue
is tried once there: its next failure is its last.
"""

from typing import NamedTuple

from zq.model.job import JobSettings, Reason
from zq.model.settings import QueueSettings


class DeadLetter(NamedTuple):
    """The queue that a job moves to, None where there is none, and after how many failures.

    `after` of None means whenever it dies, 0 never.
    """

    queue: str | None = None
    after: int | None = None


def dead_letter_of(options: JobSettings | None, settings: QueueSettings) -> DeadLetter:
    """What holds for a job of a queue with these settings."""
    if options is not None and options.dead_letter is not None:
        return DeadLetter(options.dead_letter, options.dead_letter_after)
    return DeadLetter(settings.dead_letter, settings.dead_letter_after)


def is_last_failure(letter: DeadLetter, queue: str, failures: int) -> bool:
    """Whether a job in a queue dies of so many failures, whatever its limit says."""
    if letter.queue is None:
        return False
    return letter.queue == queue or bool(letter.after and failures >= letter.after)


def grave_of(letter: DeadLetter, queue: str, failures: int, reason: Reason) -> str | None:
    """The queue that a job moves to which dies in a queue; None: it is dead where it is."""
    if letter.queue == queue or letter.after == 0:
        return None
    if reason is Reason.EXHAUSTED and failures < (letter.after or 0):
        return None
    return letter.queue
