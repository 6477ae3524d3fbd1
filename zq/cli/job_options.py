"""Options for what rooms add to a job. A room has them in `cli_job.py`, as `OPTIONS`."""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from zq.rooms import parts

F = TypeVar("F", bound=Callable[..., Any])


class JobOption(NamedTuple):
    """An option that makes a field of a job. The parameter of the command has the field's name."""

    field: str
    option: Callable[[Any], Any]
    """The decorator that adds it to a command."""
    sent: Callable[[Any], Any]
    """Makes the field, as it is sent, from the option's value."""


OF_ROOMS: tuple[JobOption, ...] = tuple(
    option for options in parts("cli_job", "OPTIONS", tuple) for option in options
)


def room_options(command: F) -> F:
    """Add the options of all rooms to a command."""
    for each in reversed(OF_ROOMS):
        command = each.option(command)
    return command


def sent_for_rooms(options: dict[str, Any]) -> dict[str, Any]:
    """The fields of a job by these options, in the form in which they are sent."""
    return {each.field: each.sent(options[each.field]) for each in OF_ROOMS}
