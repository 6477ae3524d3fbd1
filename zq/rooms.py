"""The rooms of zq: features, doors and what operators look at, each a package with all of it.

The core knows no room by name. When it is put together, it asks the list for what all rooms have
for one of its layers. So a worker imports no HTTP, and a deleted room leaves nothing behind but its
line here. `ARCHITECTURE.md` says which file of a room belongs to which layer.
"""

from functools import cache
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import TypeVar

T = TypeVar("T")

ROOMS = (
    "zq.features.archive",
    "zq.features.audit",
    "zq.features.backlog",
    "zq.features.batches",
    "zq.features.budgets",
    "zq.features.crons",
    "zq.features.devices",
    "zq.features.diagnosis",
    "zq.features.failures",
    "zq.features.fair",
    "zq.features.forward",
    "zq.features.history",
    "zq.features.inbox",
    "zq.features.producers",
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


def parts(layer: str, name: str, kind: type[T]) -> list[T]:
    """The constants that rooms have under one name for one layer, in the order of the list.

    `parts("tick", "PHASES", tuple)` has the constant `PHASES` of every room with a module `tick` in
    which it is. Raises TypeError if one is of another `kind`.
    """
    found = []
    for module in _modules(layer):
        part = getattr(module, name, None)
        if part is None:
            continue
        if not isinstance(part, kind):
            raise TypeError(f"{name} of {module.__name__} is no {kind.__name__}")
        found.append(part)
    return found


@cache
def _modules(layer: str) -> tuple[ModuleType, ...]:
    """The modules that rooms have for a layer.

    A search for one that is not there goes through the whole path, and each server would repeat it.
    """
    names = (f"{room}.{layer}" for room in ROOMS)
    return tuple(import_module(name) for name in names if find_spec(name) is not None)
