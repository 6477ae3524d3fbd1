"""The share that a job belongs to, and the commands about fair keys."""

from zq.features.fair.model import DEFAULT_WEIGHT, FairLimit
from zq.model.commands import Command
from zq.model.job import JobSettings


def fair_key_of(options: JobSettings | None) -> str | None:
    """The fair key of a job with these options; None if it has none."""
    key: str | None = None if options is None else options.fair_key  # type: ignore[attr-defined]
    return key


def fair_weight_of(options: JobSettings | None) -> float:
    """The weight that a job with these options brings for its key."""
    weight: float | None = None
    if options is not None:
        weight = options.fair_weight  # type: ignore[attr-defined]
    return DEFAULT_WEIGHT if weight is None else weight


class PutFairLimit(Command[FairLimit], frozen=True):
    """Set the weight and the limits of a key of a queue, whether or not it has jobs."""

    queue: str
    key: str
    limit: FairLimit


class DropFairLimit(Command[bool], frozen=True):
    """Leave a key to its jobs and its queue. Returns True if something was set for it."""

    queue: str
    key: str
