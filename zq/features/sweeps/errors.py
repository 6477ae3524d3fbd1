"""The errors of the error tree about sweeps."""

from zq.model.errors import Conflict, LimitReached, NotFound


class SweepNotFound(NotFound):
    code = "sweep_not_found"

    def __init__(self, text: str = "this sweep is not running") -> None:
        super().__init__(text)


class NothingToUndo(Conflict):
    code = "nothing_to_undo"


class PreviewNeeded(Conflict):
    """A change that has to be looked ahead to was not."""

    code = "preview_needed"


class PreviewStale(Conflict):
    """The change would no longer do what its preview has told."""

    code = "preview_stale"


class NotConfirmed(Conflict):
    """A deletion of many jobs lacks the word that confirms it."""

    code = "not_confirmed"


class TooManySweeps(LimitReached):
    code = "too_many_sweeps"

    def __init__(self, most: int) -> None:
        super().__init__(
            f"{most} changes by filter are running already: try again when one has ended (`GET"
            " /sweeps` lists them), or raise --max-sweeps"
        )
