"""Who asks for the work that is under way, so that those who ask can take turns."""

from contextvars import ContextVar

ASKER: ContextVar[object] = ContextVar("zq-asker", default=None)
"""The sender of the request that is being served, as a function, for few ask. It is the name of a
key, or an address where no keys are needed. None stands for the server itself."""


def asker() -> object:
    """Who asks for the work that is under way."""
    known = ASKER.get()
    return known() if callable(known) else known
