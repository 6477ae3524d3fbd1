"""The errors of the error tree about producers."""

from zq.model.errors import Conflict, Forbidden, NotFound, Unprocessable


class ProducerNotFound(NotFound):
    code = "producer_not_found"

    def __init__(self, name: str) -> None:
        super().__init__(f"producer {name!r} is not known: it has stored nothing, or was deleted")


class SequenceGap(Conflict):
    """A request begins beyond the next number of its producer: the jobs between them are missing.

    So it is after a restore of the server, too: the producer sends again from `expected` on.
    """

    code = "sequence_gap"

    def __init__(self, name: str, seq: int, expected: int) -> None:
        super().__init__(
            f"producer {name!r} sends number {seq}, and {expected} is expected: send the jobs from"
            f" {expected} on"
        )
        self.details = {"expected": expected}


class ProducerFenced(Conflict):
    """The name belongs to another epoch: that of a later start, or of another device.

    `epoch` and `last` are those that are stored. `ended` is the last number of the epoch that was
    asked for, if the server remembers it.
    """

    code = "producer_fenced"

    def __init__(self, name: str, epoch: str, last: int, ended: int | None = None) -> None:
        super().__init__(
            f"producer {name!r} is in epoch {epoch!r}, whose last number is {last}: another epoch"
            f" takes over with after={epoch}:{last}, once nothing of the old one is under way"
        )
        known = {} if ended is None else {"ended": ended}
        self.details = {"epoch": epoch, "last": last, **known}


class ProducerOutOfReach(Forbidden):
    """The key may not write as this producer."""

    code = "producer_out_of_reach"

    def __init__(self, name: str, patterns: tuple[str, ...]) -> None:
        shown = ", ".join(patterns) or "none"
        super().__init__(f"this key may not write as producer {name!r}; its producers: {shown}")


class TooManyProducers(Unprocessable):
    """There are as many producers as the server remembers. Waiting does not help."""

    code = "too_many_producers"

    def __init__(self, most: int) -> None:
        super().__init__(
            f"the server remembers {most} producers already: delete those that are gone with"
            " DELETE /producers/{name}"
        )
