"""What commands say of queues that do not exist."""

from collections.abc import Iterable
from http import HTTPStatus

import click

from zq.cli.remote import Refused, Remote
from zq.cli.terminal import one_line, say
from zq.model.near import meant

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
