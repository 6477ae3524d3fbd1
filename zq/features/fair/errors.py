"""The errors about fair keys in the error tree."""

from zq.model.errors import NotFound


class FairKeyNotFound(NotFound):
    code = "fair_key_not_found"

    def __init__(self, queue: str, key: str) -> None:
        super().__init__(
            f"queue {queue!r} has no jobs of the fair key {key!r}, and sets nothing for it"
        )
