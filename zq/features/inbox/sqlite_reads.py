"""A data directory has no inbox: nobody but its server may write into the database."""

from zq.features.inbox.store import InboxReads, InboxRow, RefusedRows
from zq.store.sqlite.readers import ReadLanes


class SqliteInboxReads(InboxReads):
    """There is nothing to read."""

    is_there = False

    def __init__(self, lanes: ReadLanes) -> None:
        pass

    async def inbox_rows(self, after: int) -> list[InboxRow]:
        return []

    async def refused(self) -> RefusedRows:
        return RefusedRows()

    async def changed(self, seconds: float) -> None:
        pass

    async def stop_listening(self) -> None:
        pass


READS = {InboxReads: SqliteInboxReads}
