"""The commands about fair keys."""

from zq.features.fair.model import FairLimit
from zq.model.commands import Command


class PutFairLimit(Command[FairLimit], frozen=True):
    """Set the weight and the limits of a key of a queue, whether or not it has jobs."""

    queue: str
    key: str
    limit: FairLimit


class DropFairLimit(Command[bool], frozen=True):
    """Leave a key to its jobs and its queue. Returns True if something was set for it."""

    queue: str
    key: str
