"""The epochs of the history here: each restore of the database begins another one."""

from typing import Self

import msgspec

from zq.engine.inbox import Inbox
from zq.features.history.engine import HistoryReaders
from zq.features.producers.model import EpochEnd
from zq.model.commands import WriteNote
from zq.service.services import Services
from zq.store.api import Store

NOTE = "history epochs"
MOST_EPOCHS = 100
"""How many restores are remembered."""


class HistoryEpochs:
    """The epochs that this database has had, the present one last, with the last numbers of the
    others."""

    @classmethod
    def of(cls, services: Services) -> Self:
        """The epochs of a server's database."""
        readers = services.engine[HistoryReaders]
        return cls(services.store, services.engine.inbox, readers)

    def __init__(self, store: Store, inbox: Inbox, readers: HistoryReaders) -> None:
        self.present = store.at_start.epoch
        self.former: list[EpochEnd] = []
        self._notes = store.reads
        self._inbox = inbox
        self._readers = readers

    async def learn(self) -> None:
        """Find out at the start whether the database was restored, before it has new records."""
        known = await self._notes.noted(NOTE, list[EpochEnd]) or []
        if not known or known[-1].epoch != self.present:
            if known:
                known[-1] = EpochEnd(known[-1].epoch, self._readers.readable)
            known = [*known[-MOST_EPOCHS:], EpochEnd(self.present, 0)]
            await self._inbox.ask(WriteNote(NOTE, msgspec.json.encode(known).decode()))
        self.former = known[:-1]

    def behind(self, epoch: str, last: int) -> int | None:
        """The last record here that somebody has who has those of an epoch up to a number; None if
        the epoch is none of this database."""
        if epoch == self.present:
            return last
        ends = {end.epoch: end.last for end in self.former}
        return min(ends[epoch], last) if epoch in ends else None
