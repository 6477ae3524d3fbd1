"""Why attempts fail on a server, for programs."""

from collections.abc import Sequence

from zq.client.asking import Ask
from zq.features.failures import verbs
from zq.features.failures.verbs import CauseDocument as CauseDocument
from zq.features.failures.verbs import FailuresDocument


class ServerFailures:
    """The failures on one server, by their causes."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask

    async def causes(self, queues: Sequence[str], range: str, order: str) -> FailuresDocument:
        """The causes of failures in these queues, or in any.

        `range` and `order` are those of `GET /failures`.
        """
        queue = {"queue": ",".join(queues)} if queues else {}
        return await self._ask(verbs.LIST, query={"range": range, "order": order} | queue)
