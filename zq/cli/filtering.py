"""The options that filter jobs, for the commands that list them and those that change them."""

from collections.abc import Callable, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from zq.cli.words import NAMES, RANGE, Moment, Names
from zq.model.filters import ValueRange
from zq.model.lifecycle import BY_NAME

if TYPE_CHECKING:
    from zq.client.values import JobQuery

STATUSES = Names(tuple(BY_NAME))

_OPTIONS = (
    click.option("--queue", type=NAMES, default=(), help="Jobs of these queues (use commas)."),
    click.option("--status", type=STATUSES, default=(), help="Jobs with these statuses."),
    click.option("--type", "type_", type=NAMES, default=(), help="Jobs of these types."),
    click.option("--group", type=NAMES, default=(), help="Jobs of these groups."),
    click.option("--priority", type=RANGE, help="Jobs with such a priority: 5, ..9 or 10..20."),
    click.option("--attempts", type=RANGE, help="Jobs that have failed so often: 1.. or 3."),
    click.option(
        "--ready-before",
        type=Moment(),
        metavar="WHEN",
        help="Jobs that were ready by then: so long ago, as in 1h, or at this date and time.",
    ),
    click.option(
        "--ready-after",
        type=Moment(),
        metavar="WHEN",
        help="Jobs that became ready since then, or come later.",
    ),
    click.option("--filter", "program", metavar="JQ", help="Jobs whose payload makes this true."),
    click.option("--budget", type=NAMES, default=(), help="Jobs that draw from these."),
    click.option(
        "--error",
        type=NAMES,
        default=(),
        metavar="SIGNATURE",
        help="Jobs whose latest failure has this cause; see GET /failures.",
    ),
)


class FilterWords(NamedTuple):
    """What the options say."""

    queue: tuple[str, ...]
    status: tuple[Any, ...]
    type_: tuple[str, ...]
    group: tuple[str, ...]
    priority: ValueRange | None
    attempts: ValueRange | None
    ready_before: int | None
    ready_after: int | None
    program: str | None
    budget: tuple[str, ...]
    error: tuple[str, ...]

    def query(self, ids: tuple[str, ...] = ()) -> "JobQuery":
        """The filter, also of these ids if there are any."""
        from zq.client.values import JobQuery

        is_of_a_time = self.ready_before is not None or self.ready_after is not None
        return JobQuery(
            self.status,
            self.queue,
            self.type_,
            ids,
            self.program,
            self.budget,
            self.error,
            groups=self.group,
            priority=self.priority,
            attempts=self.attempts,
            ready_at=ValueRange(self.ready_after, self.ready_before) if is_of_a_time else None,
        )


def filtering(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options that filter jobs, as `FilterWords`."""
    return gathering(command, _OPTIONS, "words", FilterWords)


def gathering(
    command: Callable[..., None],
    parameters: Sequence[Callable[[Any], Any]],
    name: str,
    kind: Any,
) -> Callable[..., None]:
    """Give a command some parameters. It gets them as one argument, a named tuple of this kind."""

    @wraps(command)
    def gathered(*args: Any, **rest: Any) -> None:
        own = {field: rest.pop(field) for field in kind._fields}
        command(*args, **{name: kind(**own)}, **rest)

    found: Callable[..., None] = gathered
    for parameter in reversed(parameters):
        found = parameter(found)
    return found
