"""The audit of a server, for programs."""

from zq.client.asking import Ask
from zq.features.audit import verbs
from zq.features.audit.verbs import ActionDocument as ActionDocument


class ServerAudit:
    """The audit of one server: the actions of its operators."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask

    async def latest(self, before: int | None, limit: int) -> list[ActionDocument]:
        """Up to `limit` actions with numbers below `before`, the latest first."""
        query = {"limit": str(limit)} | ({} if before is None else {"before": str(before)})
        return (await self._ask(verbs.LIST, query=query)).actions
