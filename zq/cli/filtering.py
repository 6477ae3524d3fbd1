"""The options that filter jobs, for the commands that list them and those that change them."""

from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from zq.cli.remote import Refused, Remote
from zq.cli.terminal import one_line, say
from zq.cli.words import NAMES, RANGE, Moment, Names
from zq.model.filters import ValueRange
from zq.model.lifecycle import BY_NAME
from zq.model.names import meant

if TYPE_CHECKING:
    from zq.client.values import JobQuery


STATUSES = Names(tuple(BY_NAME))


def once(*names: str, **more: Any) -> Callable[[Any], Any]:
    """An option that may be given once: of two, one would be passed over without a word."""
    default = more.pop("default", None)

    def only(ctx: click.Context, parameter: click.Parameter, given: tuple[Any, ...]) -> Any:
        if len(given) > 1:
            raise click.BadParameter(
                "it is given more than once: several names go into one list, with commas",
                ctx,
                parameter,
            )
        return given[0] if given else default

    return click.option(*names, multiple=True, callback=only, **more)


_OPTIONS = (
    once("--queue", type=NAMES, default=(), help="Jobs of these queues (use commas)."),
    once("--status", type=STATUSES, default=(), help="Jobs with these statuses."),
    once("--type", "type_", type=NAMES, default=(), help="Jobs of these types."),
    once("--group", type=NAMES, default=(), help="Jobs of these groups."),
    once("--priority", type=RANGE, help="Jobs with such a priority: 5, ..9 or 10..20."),
    once("--attempts", type=RANGE, help="Jobs that have failed so often: 1.. or 3."),
    once(
        "--ready-before",
        type=Moment(),
        metavar="WHEN",
        help="Jobs that were ready by then: so long ago, as in 1h, or at this date and time.",
    ),
    once(
        "--ready-after",
        type=Moment(),
        metavar="WHEN",
        help="Jobs that became ready since then, or come later.",
    ),
    once(
        "--search",
        metavar="WORDS",
        help="Jobs whose type, latest error or payload has all these words.",
    ),
    once("--filter", "program", metavar="JQ", help="Jobs whose payload makes this true."),
    once("--budget", type=NAMES, default=(), help="Jobs that draw from these."),
    once(
        "--error",
        type=NAMES,
        default=(),
        metavar="SIGNATURE",
        help="Jobs whose latest failure has this cause; see GET /failures.",
    ),
)


class FilterWords(NamedTuple):
    """The values of the filter options."""

    queue: tuple[str, ...]
    status: tuple[Any, ...]
    type_: tuple[str, ...]
    group: tuple[str, ...]
    priority: ValueRange | None
    attempts: ValueRange | None
    ready_before: int | None
    ready_after: int | None
    search: str | None
    program: str | None
    budget: tuple[str, ...]
    error: tuple[str, ...]

    def query(self, ids: tuple[str, ...] = ()) -> "JobQuery":
        """The filter, also of these ids if there are any."""
        from zq.client.values import JobQuery

        after, before = self.ready_after, self.ready_before
        if after is not None and before is not None and after > before:
            raise click.UsageError("--ready-after is later than --ready-before: no job is between")
        is_of_a_time = after is not None or before is not None
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
            ready_at=ValueRange(after, before) if is_of_a_time else None,
            search=self.search,
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


CREATE = click.option("--create", is_flag=True, help="Do so even if no such queue exists yet.")


def check_queue(remote: Remote, queue: str, *, create: bool) -> None:
    """Raise `Refused` for the change of a queue that does not exist, unless `create` is given."""
    if create:
        return
    for text in _missing(remote, [queue]):
        raise Refused(f"{text} Give --create if a new one is meant")


def warn_of_queues(remote: Remote, queues: Iterable[str]) -> None:
    """Say on stderr which of these queues do not exist."""
    for text in _missing(remote, queues):
        say(text, err=True)


def _missing(remote: Remote, queues: Iterable[str]) -> Iterable[str]:
    """A message about each queue without jobs, workers, recent traffic and settings."""
    from zq.client.errors import BackendError
    from zq.model.settings import QueueSettings

    wanted = list(queues)
    if not wanted:
        return
    try:
        known = {each.queue for each in remote.run(remote.backend.stats())}
        for worker in remote.run(remote.backend.operations.workers()):
            known.update(worker.queues)
        for queue in wanted:
            if queue in known or remote.run(remote.backend.settings(queue)) != QueueSettings():
                continue
            question = meant(queue, known) or "."
            yield one_line(f"no such queue yet: {queue}{question}")
    except BackendError as error:
        # A key may change a queue and yet not read.
        if error.status != HTTPStatus.FORBIDDEN:
            raise
