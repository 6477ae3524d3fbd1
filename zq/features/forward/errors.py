"""The errors of the error tree about lanes."""

from collections.abc import Sequence

from zq.model.errors import Conflict, NotFound, Unprocessable


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
