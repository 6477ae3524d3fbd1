"""What rooms bring to the command line.

Their commands are under a section of `zq --help`: `COMMANDS` in a room's `cli.py`. The options for
what they add to a job are `OPTIONS` in its `cli_job.py`.
"""

from collections.abc import Callable
from enum import StrEnum
from typing import Any, NamedTuple, TypeVar

from zq.rooms import parts


class Section(StrEnum):
    """The title of a section: what people do with the commands in it."""

    RUN = "Run"
    LOOK = "Look"
    JOBS = "Jobs"
    QUEUES = "Queues"
    LOOK_BACK = "Look back"
    REPAIR = "Back up and repair"
    ACCESS = "Access"


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
    for each in reversed(OF_ROOMS):
        command = each.option(command)
    return command


def sent_for_rooms(options: dict[str, Any]) -> dict[str, Any]:
    """The fields of a job by these options, in the form in which they are sent."""
    return {each.field: each.sent(options[each.field]) for each in OF_ROOMS}
