"""Cron entries of an engine in this process."""

from collections.abc import Sequence
from typing import Any

from zq.client.embedded.deliveries import Do
from zq.client.formats import JSON
from zq.features.crons.client import Schedule, ShownGroup, ShownSchedule
from zq.features.crons.model import GroupPatch
from zq.features.crons.wire import (
    check_cron,
    decode_entry,
    decode_group,
    entry_document,
    group_document,
)
from zq.model.reach import EVERYWHERE
from zq.services import Services
from zq.wire import codecs as wire
from zq.wire.bodies import Limits


class EmbeddedSchedules:
    """The cron entries of an engine, through its service."""

    def __init__(self, do: Do, limits: Limits) -> None:
        self._do = do
        self._limits = limits

    async def groups(self) -> list[str]:
        """The names of the groups."""
        return await self._do(lambda services: services.crons.groups(EVERYWHERE))

    async def group(self, group: str) -> ShownGroup:
        """A group with its entries by name."""
        return _group(await self._do(lambda services: services.crons.group(group, EVERYWHERE)))

    async def replace(
        self, group: str, entries: Sequence[Schedule], timezone: str | None = None
    ) -> ShownGroup:
        """Replace a group and all its entries."""
        text = JSON.encode({"entries": entries, "timezone": timezone})

        async def verb(services: Services) -> Any:
            draft = decode_group(text, wire.JSON, self._limits)
            return await services.crons.replace_group(check_cron(group), draft, EVERYWHERE)

        return _group(await self._do(verb))

    async def put(self, group: str, entry: Schedule) -> ShownSchedule:
        """Add an entry, or replace the entry with its name."""
        text = JSON.encode(entry)

        async def verb(services: Services) -> Any:
            draft = decode_entry(text, wire.JSON, self._limits, None)
            return await services.crons.put_entry(check_cron(group), draft, EVERYWHERE)

        document = entry_document(await self._do(verb))
        return JSON.decode(wire.JSON.encode(document), ShownSchedule)

    async def pause(self, group: str, entry: str | None, paused: bool) -> None:
        """Pause or resume an entry, or a whole group."""

        async def verb(services: Services) -> None:
            if entry is None:
                await services.crons.change_group(group, GroupPatch(paused=paused), EVERYWHERE)
            else:
                await services.crons.pause_entry(group, entry, paused, EVERYWHERE)

        await self._do(verb)

    async def remove(self, group: str, entry: str | None = None) -> None:
        """Delete an entry, or a whole group."""

        async def verb(services: Services) -> None:
            if entry is None:
                await services.crons.delete_group(group, EVERYWHERE)
            else:
                await services.crons.delete_entry(group, entry, EVERYWHERE)

        await self._do(verb)


def _group(found: Any) -> ShownGroup:
    return JSON.decode(wire.JSON.encode(group_document(*found)), ShownGroup)
