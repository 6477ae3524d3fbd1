"""The rooms of zq: features, doors and what operators look at, each a package with all of it.

Whoever assembles the server from rooms goes through this list. `ARCHITECTURE.md` says which file of
a room belongs to which layer.
"""

ROOMS = (
    "zq.features.archive",
    "zq.features.audit",
    "zq.features.batches",
    "zq.features.budgets",
    "zq.features.crons",
    "zq.features.diagnosis",
    "zq.features.failures",
    "zq.features.history",
    "zq.features.schemas",
    "zq.features.search",
    "zq.features.sweeps",
    "zq.features.targets",
    "zq.features.trends",
    "zq.features.waits",
    "zq.doors.queue_ti",
    "zq.doors.topics",
    "zq.operators.admin",
    "zq.operators.ops",
    "zq.operators.page",
)
