"""The errors of the error tree about lanes."""

from collections.abc import Sequence

from zq.model.errors import Conflict, NotFound, StorageFull, Unprocessable


class LaneNotFound(NotFound):
    code = "lane_not_found"

    def __init__(self, name: str) -> None:
        super().__init__(f"lane {name!r} is not known: GET /forward lists all lanes")


class LanesMeet(Conflict):
    """A queue can be on one lane only: otherwise its jobs would be sent twice, or by chance."""

    code = "lanes_meet"

    def __init__(self, name: str, queues: Sequence[str], other: str) -> None:
        super().__init__(
            f"lane {name!r} would share queues ({', '.join(queues)}) with lane {other!r}: narrow"
            " one of the two"
        )


class TooManyLanes(Unprocessable):
    code = "too_many_lanes"

    def __init__(self, most: int) -> None:
        super().__init__(f"there are {most} lanes already: drop those that nobody needs")


class HubIsBuffered(Conflict):
    """A hub's answer must mean that the jobs are on its disk: they are deleted here then."""

    code = "hub_is_buffered"

    def __init__(self, url: str) -> None:
        super().__init__(
            f"{url} acknowledges jobs before they are on its disk (--enqueue-commit-mode buffered):"
            " start it with fsync, or say in the lane's rule that this will do (buffered)"
        )


class LaneFenced(Conflict):
    """Another server is the producer of this name at the hub. Only one of the two may be it."""

    code = "lane_fenced"

    def __init__(self, producer: str, epoch: str, last: int) -> None:
        super().__init__(
            f"another server sends as {producer} to this hub (epoch {epoch}, last number {last}):"
            " give one of the two another name (--device), or, if the other is gone, let this one"
            " take over (zq forward resume LANE --take-over)"
        )


class LaneFull(StorageFull):
    """As much waits on a lane as may. There is room again once its hub has taken some."""

    code = "lane_full"

    def __init__(self, lane: str, what: str) -> None:
        super().__init__(
            f"lane {lane!r} is full: {what}; new jobs of its queues are refused until its hub has"
            " taken some (zq forward status says why it waits)"
        )
