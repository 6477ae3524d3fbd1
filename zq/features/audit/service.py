"""The verbs about the audit: recording what operators do, and reading it."""

from collections.abc import Callable, Sequence
from typing import NamedTuple, Self

import msgspec

from zq.engine.inbox import Inbox
from zq.features.audit.model import AUDIT_LOG, OperatorAction, RecordActions, RecordedAction
from zq.features.audit.settings import AuditSettings
from zq.model.errors import RecordsGone
from zq.service.services import Services
from zq.store.api import Store

PAGE = 500
MOST_LOOKED = 20_000
"""The actions on a page of a search, and the most actions that it examines."""


class AuditPage(NamedTuple):
    """Actions, and the number of the last one that was looked at, if the search broke off there."""

    actions: list[RecordedAction]
    reached: int | None = None


class Audit:
    """The log of actions."""

    @classmethod
    def of(cls, services: Services) -> Self:
        no_audit = services.settings[AuditSettings].no_audit
        return cls(services.store, services.engine.inbox, no_audit)

    def __init__(self, store: Store, inbox: Inbox, no_audit: bool) -> None:
        self._reads = store.reads
        self._inbox = inbox
        self._no_audit = no_audit

    async def record(self, action: OperatorAction) -> None:
        """Store an action, unless the settings say otherwise. When this returns, the record is as
        durable as every change."""
        if not self._no_audit:
            await self._inbox.ask(RecordActions([action]))

    async def latest(
        self,
        before: int | None,
        limit: int,
        matches: Callable[[OperatorAction], bool] | None = None,
    ) -> AuditPage:
        """Up to `limit` matching actions with numbers below `before`, the latest one first.

        A search looks at up to `MOST_LOOKED` actions.
        """
        end = await self._reads.log_end(AUDIT_LOG)
        last = end if before is None else min(before - 1, end)
        found: list[RecordedAction] = []
        least = last - MOST_LOOKED
        while last > 0:
            length = limit if matches is None else PAGE
            page = await self._below(last, length)
            for each in page:
                if matches is None or matches(each.action):
                    found.append(each)
                    if len(found) == limit:
                        return AuditPage(found)
            if len(page) < length:
                break
            last = page[-1].seq - 1
            if matches is not None and 0 < last <= least:
                return AuditPage(found, last + 1)
        return AuditPage(found)

    async def _below(self, last: int, limit: int) -> list[RecordedAction]:
        """The latest actions up to a number."""
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
