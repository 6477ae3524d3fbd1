"""The verbs about the backlog of queues."""

import msgspec
from msgspec import UNSET, UnsetType

from zq.model.keys import KeyScope
from zq.verbs import TEXT, Parameter, Verb, names


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


READ = KeyScope.READ

MOST_TARGET = 1_000_000
MOST_QUEUES = 100
"""So many queues are added up at once."""

_TARGET = Parameter(
    "target",
    {"type": "integer", "minimum": 1, "maximum": MOST_TARGET},
    "How many jobs a worker is to have; otherwise `workers` is from running times.",
)

OF_QUEUE = Verb("GET", "/queues/{queue}/backlog", READ, BacklogDocument, query=(_TARGET,))
OF_QUEUES = Verb(
    "GET",
    "/backlog",
    READ,
    BacklogDocument,
    query=(
        Parameter("queue", names(), f"Any of these queues: up to {MOST_QUEUES}."),
        Parameter("prefix", TEXT, "The queues with unfinished jobs whose names begin so."),
        _TARGET,
    ),
)
