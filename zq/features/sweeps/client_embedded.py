"""Sweeps and the audit of an engine in this process."""

from zq.client.embedded.deliveries import Do
from zq.client.embedded.words import filter_of
from zq.client.values import JobQuery
from zq.features.audit.service import Audit
from zq.features.audit.wire import ActionDocument, action_document
from zq.features.sweeps.client import SweepVerb
from zq.features.sweeps.errors import SweepNotFound
from zq.features.sweeps.model import SweepAuthor
from zq.features.sweeps.service import Sweeps
from zq.features.sweeps.service_ended import EndedSweeps
from zq.features.sweeps.service_one import AFFECTED
from zq.features.sweeps.wire import (
    SweepDocument,
    SweepPreviewDocument,
    UndoneDocument,
    ended_document,
    preview_document,
    running_document,
)
from zq.model.reach import EVERYWHERE
from zq.service.services import Services


class EmbeddedSweeps:
    """A `zq.features.sweeps.client.ServerSweeps`, through the services."""

    def __init__(self, do: Do) -> None:
        self._do = do

    async def preview(
        self, verb: SweepVerb, query: JobQuery, *, force: bool = False
    ) -> SweepPreviewDocument:
        """How many jobs a change would change now, and an id of this moment."""

        async def look(services: Services) -> SweepPreviewDocument:
            asked = filter_of(query, services.ids)
            found = await services[Sweeps].preview(AFFECTED[verb](asked, force), asked)
            return preview_document(found, services.ids)

        return await self._do(look)

    async def cancel(
        self, query: JobQuery, *, force: bool = False, reason: str | None = None
    ) -> int:
        """Cancel the matching jobs."""

        async def verb(services: Services) -> int:
            filter, author = filter_of(query, services.ids), SweepAuthor(reason=reason)
            return (await services[Sweeps].cancel(filter, force, author)).changed

        return await self._do(verb)

    async def delete(self, query: JobQuery, *, reason: str | None = None) -> int:
        """Delete the matching jobs."""

        async def verb(services: Services) -> int:
            filter, author = filter_of(query, services.ids), SweepAuthor(reason=reason)
            return await services[Sweeps].delete(filter, author)

        return await self._do(verb)

    async def running(self) -> list[SweepDocument]:
        """The sweeps under way."""

        async def verb(services: Services) -> list[SweepDocument]:
            return [
                running_document(each.id, each.outline, each.changed, each.passed, services.ids)
                for each in services[Sweeps].running(EVERYWHERE)
            ]

        return await self._do(verb)

    async def ended(self, limit: int) -> list[SweepDocument]:
        """The sweeps that have changed jobs."""

        async def verb(services: Services) -> list[SweepDocument]:
            found = await services[EndedSweeps].latest(EVERYWHERE, None, limit)
            return [ended_document(sweep, services.ids) for sweep in found]

        return await self._do(verb)

    async def get(self, id: str) -> SweepDocument:
        """One sweep."""

        async def verb(services: Services) -> SweepDocument:
            sweep = await services[EndedSweeps].get(_number(id), EVERYWHERE)
            document = ended_document(sweep, services.ids)
            if sweep.outline.verb == "cancel":
                left = await services[EndedSweeps].left(sweep)
                document.left, document.exact = left.jobs, left.exact
            return document

        return await self._do(verb)

    async def stop(self, id: str) -> None:
        """Stop a sweep."""

        async def verb(services: Services) -> None:
            services[Sweeps].cut_short(_number(id), EVERYWHERE)

        await self._do(verb)

    async def undo(self, id: str, *, reason: str | None = None) -> UndoneDocument:
        """Take back the jobs that a sweep has cancelled."""

        async def verb(services: Services) -> UndoneDocument:
            author = SweepAuthor(reason=reason)
            done = await services[EndedSweeps].undo(_number(id), EVERYWHERE, author)
            return UndoneDocument(*done)

        return await self._do(verb)

    async def audit(self, before: int | None, limit: int) -> list[ActionDocument]:
        """Actions of operators."""

        async def verb(services: Services) -> list[ActionDocument]:
            page = await services[Audit].latest(before, limit)
            return [action_document(each) for each in page.actions]

        return await self._do(verb)


def _number(id: str) -> int:
    if not (id.isascii() and id.isdecimal()):
        raise SweepNotFound(f"the id of a sweep is a number, not {id!r}")
    return int(id)
