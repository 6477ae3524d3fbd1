"""Fixes settings of a job when it comes: those of its queue, or else the sender's defaults.

Without defaults, settings that a job leaves open follow its queue's settings as they change.
"""

import msgspec

from zq.model.job import NO_OPTIONS, JobSettings, NewJob
from zq.model.settings import QueueSettings


def fixed(job: NewJob, settings: QueueSettings, defaults: QueueSettings) -> NewJob:
    """A new job with the limits, time to live and dead-letter queue that apply when it comes."""
    return msgspec.structs.replace(
        job,
        options=fixed_options(job.options, settings, defaults),
        ttl_ms=fixed_ttl(settings, defaults) if job.ttl_ms is None else job.ttl_ms,
    )


def fixed_options(
    options: JobSettings | None, settings: QueueSettings, defaults: QueueSettings
) -> JobSettings:
    """Options with the limit and the dead-letter queue that apply, unless they have their own."""
    own = options or NO_OPTIONS
    limit, letter, after = own.retry_limit, own.dead_letter, own.dead_letter_after
    if limit is None:
        limit = defaults.retry_limit if settings.retry_limit is None else settings.retry_limit
    if letter is None:
        says = settings.dead_letter is not None or settings.dead_letter_after is not None
        letter = settings.dead_letter or defaults.dead_letter
        after = (settings if says else defaults).dead_letter_after
    return msgspec.structs.replace(
        own, retry_limit=limit, dead_letter=letter, dead_letter_after=after
    )


def fixed_ttl(settings: QueueSettings, defaults: QueueSettings) -> int | None:
    """How long a job may wait for a worker; 0 means forever."""
    return defaults.ttl_ms if settings.ttl_ms is None else settings.ttl_ms
