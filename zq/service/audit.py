"""The verbs about the audit: recording what operators do, and reading it."""

from collections.abc import Sequence

import msgspec

from zq.engine.inbox import Inbox
from zq.model.audit import AUDIT_LOG, OperatorAction, RecordActions, RecordedAction
from zq.model.errors import RecordsGone
from zq.store.api import Store


class Audit:
    """The log of actions."""

    def __init__(self, store: Store, inbox: Inbox) -> None:
        self._reads = store.reads
        self._inbox = inbox

    async def record(self, action: OperatorAction) -> None:
        """Store an action. When this returns, the record is as durable as every change."""
        await self._inbox.ask(RecordActions([action]))

    async def latest(self, before: int | None, limit: int) -> list[RecordedAction]:
        """Up to `limit` actions with numbers below `before`, the latest one first."""
        end = await self._reads.log_end(AUDIT_LOG)
        last = end if before is None else min(before - 1, end)
        if last < 1:
            return []
        try:
            found = await self._page(max(last - limit, 0), last, limit)
        except RecordsGone:
            # Fewer than `limit` are kept below that number.
            found = await self._page(None, last, limit)
        return found[::-1]

    async def _page(self, after: int | None, upto: int, limit: int) -> list[RecordedAction]:
        _, actions = await self._reads.log_page(AUDIT_LOG, after, upto, limit, _recorded)
        return actions


_action = msgspec.json.Decoder(OperatorAction)


def _recorded(first: int, _shared: str, actions: Sequence[msgspec.Raw]) -> list[RecordedAction]:
    return [
        RecordedAction(seq, _action.decode(action))
        for seq, action in enumerate(actions, start=first)
    ]
