"""Reviving dead jobs, singly or by filter, and the sweeps that are under way."""

from collections.abc import Callable
from typing import Any

from aiohttp import web

from zq.http.door import PATH, Route
from zq.http.guard import reach_of
from zq.http.transport.answer import Answer
from zq.http.zizq.endpoints import BodyEndpoints, answer, endpoint
from zq.http.zizq.query import (
    FILTERS,
    job_filter,
    parameters,
    refuse_terminal_statuses,
    refuse_uncancellable,
    switch,
)
from zq.model.errors import InvalidRequest
from zq.model.filters import Filter, refuse_unrevivable
from zq.model.ids import IdCodec
from zq.model.keys import KeyScope
from zq.model.lifecycle import NAMES
from zq.service import Services
from zq.service.sweeps import Sweep, cancellable, changeable, revivable
from zq.wire.codecs import BodyCodec
from zq.wire.documents import job_document
from zq.wire.ids import key_of
from zq.wire.settings import decode_limit

READ, MANAGE = KeyScope.READ, KeyScope.MANAGE


def _redriven(filter: Filter, _force: bool) -> Filter:
    refuse_unrevivable(filter)
    return revivable(filter)


def _cancelled(filter: Filter, force: bool) -> Filter:
    refuse_uncancellable(filter, force)
    return cancellable(filter, force)


def _patched(filter: Filter, _force: bool) -> Filter:
    refuse_terminal_statuses(filter)
    return changeable(filter)


VERBS: dict[str, Callable[[Filter, bool], Filter]] = {
    "delete": lambda filter, _force: filter,
    "cancel": _cancelled,
    "redrive": _redriven,
    "patch": _patched,
}
"""The changes that can be previewed, and which of the matching jobs each of them changes."""


class SweepsApi:
    """`retry`, `redrive` and `/sweeps`."""

    def __init__(self, services: Services, endpoints: BodyEndpoints) -> None:
        self._jobs, self._sweeps, self._ids = services.jobs, services.sweeps, services.ids
        self._endpoints = endpoints

    def routes(self) -> list[Route]:
        """Method, path, handler and scope of each endpoint."""
        redrive = self._endpoints.change(self.redrive, optional=True)
        return [
            Route("POST", "/jobs/{id}/retry", endpoint(self.retry), MANAGE),
            Route("POST", "/jobs/redrive", redrive, MANAGE),
            Route("GET", "/sweeps/preview", endpoint(self.preview), READ),
            Route("GET", "/sweeps", endpoint(self.list), READ),
            Route("DELETE", "/sweeps/{id}", endpoint(self.stop), MANAGE),
        ]

    async def retry(self, request: web.BaseRequest, accepted: BodyCodec) -> Answer:
        """Make a dead job ready again where it died: 200 with the job, 409 if it is not dead.

        Its attempts begin anew, and its error history is kept. With `home=true` it goes back to the
        queue in which it died first, also if it waits in a dead-letter queue.
        """
        home = switch("home", parameters(request, ("home",)))
        key, reach = key_of(request[PATH]["id"], self._ids), reach_of(request)
        job = await (self._jobs.send_home if home else self._jobs.retry)(key, reach)
        return answer(job_document(job, self._ids, with_payload=False), accepted)

    async def redrive(
        self, request: web.BaseRequest, accepted: BodyCodec, body: bytes, sent: BodyCodec
    ) -> Answer:
        """Bring back the matching jobs, at most `limit`: 200 with their number.

        These are dead jobs. If the query names queues, they are also the jobs that wait in these
        queues as in dead-letter queues. Such jobs go back to the queue that they came from.
        """
        limit = decode_limit(body, sent)
        filter = job_filter(parameters(request, FILTERS), self._ids, reach_of(request))
        refuse_unrevivable(filter)
        return answer({"redriven": await self._sweeps.redrive(filter, limit)}, accepted)

    async def preview(self, request: web.BaseRequest, accepted: BodyCodec) -> Answer:
        """How many jobs a change by filter would change now, and an id of this moment: `upto`.

        The change by the same filter and this `upto` leaves alone what arrives after the look.
        `exact` is false where there are more than 10,000 jobs: then there are at least `count`.
        `verb` is the change: `delete` (or none), `cancel`, `redrive` or `patch`.
        """
        values = parameters(request, (*FILTERS, "verb", "force"))
        verb, force = values.get("verb", "delete"), switch("force", values)
        if verb not in VERBS:
            raise InvalidRequest(f"`verb` must be one of {', '.join(VERBS)}, not {verb!r}")
        filter = job_filter(values, self._ids, reach_of(request))
        found = await self._sweeps.preview(VERBS[verb](filter, force))
        upto = self._ids.text(found.upto)
        return answer({"count": found.jobs, "exact": found.exact, "upto": upto}, accepted)

    async def list(self, request: web.BaseRequest, accepted: BodyCodec) -> Answer:
        """The sweeps under way, the oldest first, with their progress.

        `changed` counts jobs. `progress` is the part of all ids that was passed, from 0 to 1.
        """
        parameters(request, ())
        sweeps = self._sweeps.running(reach_of(request))
        return answer({"sweeps": [_document(sweep, self._ids) for sweep in sweeps]}, accepted)

    async def stop(self, request: web.BaseRequest, _accepted: BodyCodec) -> Answer:
        """Stop a sweep between two slices: 204. Its changes so far stay.

        The client that began it gets the number so far.
        """
        parameters(request, ())
        self._sweeps.cut_short(request[PATH]["id"], reach_of(request))
        return Answer(204)


def _document(sweep: Sweep, ids: IdCodec) -> dict[str, Any]:
    filter = sweep.change.filter
    named = {
        "status": [NAMES[status] for status in sorted(filter.statuses)],
        "queue": list(filter.queues),
        "type": list(filter.types),
        "filter": filter.program,
        "upto": None if filter.upto is None else ids.text(filter.upto),
    }
    return {
        "id": sweep.id,
        "verb": sweep.change.verb,
        "started_at": sweep.started_at,
        "changed": sweep.changed,
        "progress": round(sweep.progress, 4),
        "by": {name: value for name, value in named.items() if value},
    }
