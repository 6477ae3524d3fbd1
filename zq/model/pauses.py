"""What messages say of a paused queue, and of a moment."""

from datetime import UTC, datetime

from zq.model.job import MAX_TIME
from zq.model.settings import QueueSettings


def pause_text(settings: QueueSettings) -> str:
    """The description of a pause: who made it, until when, and why."""
    text = "paused"
    if settings.paused_by is not None:
        text += f" by {settings.paused_by}"
    if settings.paused_until is not None:
        text += f" until {moment_text(settings.paused_until)}"
    return text if settings.pause_reason is None else f"{text} ({settings.pause_reason})"


def moment_text(ms: int) -> str:
    """A time in UTC to the second, from milliseconds since 1970."""
    try:
        return f"{datetime.fromtimestamp(min(ms, MAX_TIME) // 1000, UTC):%Y-%m-%dT%H:%M:%SZ}"
    except (OverflowError, ValueError, OSError):
        return f"{ms} ms since 1970"
