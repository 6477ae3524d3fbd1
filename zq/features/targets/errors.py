"""The errors about targets of queues."""

from zq.model.errors import Conflict, NotFound


class TargetExists(Conflict):
    code = "target_exists"

    def __init__(self, queue: str, target: str) -> None:
        super().__init__(f"{target!r} is a target of {queue!r} already")


class TargetNotFound(NotFound):
    code = "target_not_found"

    def __init__(self, queue: str, target: str) -> None:
        super().__init__(f"{target!r} is not a target of {queue!r}")
