"""The errors about archives of completed jobs."""

from zq.model.errors import Unprocessable


class NotArchived(Unprocessable):
    """The queue keeps no completed jobs, so there is nothing to replay."""

    code = "not_archived"

    def __init__(self, queue: str) -> None:
        super().__init__(
            f"{queue!r} is not replayable: have its settings keep completed jobs first"
        )


class OutOfArchive(Unprocessable):
    """The queue keeps completed jobs for a shorter time."""

    code = "out_of_archive"

    def __init__(self, queue: str, kept_ms: int) -> None:
        super().__init__(
            f"{queue!r} keeps completed jobs for {kept_ms // 1000} s: begin at a later time"
        )
