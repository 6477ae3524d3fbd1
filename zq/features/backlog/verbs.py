"""The verbs about the backlog of queues."""

from zq.features.backlog.wire import BacklogDocument
from zq.model.keys import KeyScope
from zq.verbs.parameters import TEXT, names
from zq.verbs.verb import Parameter, Verb

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
