"""How old what is shown is, and why its source has stopped telling."""

import time

STALE_S = 5.0
"""A server says something every two seconds. After so long a time, what is shown is not current."""


class Freshness:
    """One source of news: the connection for lists, or a live view of the operators' page."""

    def __init__(self) -> None:
        self.heard_at: float | None = None
        """The monotonic time of the last word from the server."""
        self.trouble = "connecting"
        """Why there are no news now. Empty while the connection stands."""

    @property
    def age_s(self) -> float | None:
        """How old what is shown is; None if nothing has been shown yet."""
        return None if self.heard_at is None else time.monotonic() - self.heard_at

    @property
    def is_live(self) -> bool:
        """True if what is shown is current."""
        age = self.age_s
        return not self.trouble and age is not None and age < STALE_S

    def hear(self, age_ms: int = 0) -> None:
        """Note a word from the server, which says how old what it has shown is."""
        self.heard_at = time.monotonic() - age_ms / 1000
        self.trouble = ""

    def lose(self, reason: str) -> None:
        """Note that the connection is lost."""
        self.trouble = reason
