"""The backlog as a document for clients."""

import msgspec
from msgspec import UNSET, UnsetType


class BacklogDocument(msgspec.Struct):
    """The jobs of one or more queues, and the workers that they need.

    `ready` jobs could run now, and `running` ones are in flight. `jobs` is their sum. `held` has
    the other ready jobs by what holds them.
    """

    ready: int
    running: int
    jobs: int
    workers: int
    held: dict[str, int]
    mean_ms: float | UnsetType = UNSET
    slots: float | UnsetType = UNSET
