"""The backlog for programs: what could run now, and how many workers it needs."""

from collections.abc import Sequence

from zq.client.asking import Ask
from zq.features.backlog import verbs
from zq.features.backlog.verbs import BacklogDocument as BacklogDocument


class ServerBacklog:
    """The backlog of one server's queues. `target` is how many jobs a worker is to have."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask

    async def of_queue(self, queue: str, target: int | None = None) -> BacklogDocument:
        """The backlog of a queue: 0 if it never was."""
        return await self._ask(verbs.OF_QUEUE, query=_query(target), queue=queue)

    async def of_queues(self, queues: Sequence[str], target: int | None = None) -> BacklogDocument:
        """The backlog of up to 100 queues together."""
        query = _query(target) | {"queue": ",".join(queues)}
        return await self._ask(verbs.OF_QUEUES, query=query)

    async def of_prefix(self, prefix: str, target: int | None = None) -> BacklogDocument:
        """The backlog of up to 100 queues together whose names begin with `prefix`."""
        return await self._ask(verbs.OF_QUEUES, query=_query(target) | {"prefix": prefix})


def _query(target: int | None) -> dict[str, str]:
    return {} if target is None else {"target": str(target)}
