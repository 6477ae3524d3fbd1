"""Taking jobs without a stream, and keeping or returning them."""

from collections.abc import Sequence
from functools import partial

from aiohttp import web

from zq.http.api.endpoints import answer
from zq.http.api.parts import ApiParts
from zq.http.door import PATH, Route
from zq.http.guard import reach_of
from zq.http.transport.answer import Answer
from zq.http.transport.channel import channel_of, when_peer_ends
from zq.model.job import JobRecord
from zq.model.keys import KeyScope
from zq.model.names import check_name
from zq.wire.codecs import BodyCodec
from zq.wire.documents import taken_documents
from zq.wire.ids import NamedKeys, held_key, raise_refusal
from zq.wire.lease_bodies import (
    decode_claim,
    decode_extend,
    decode_extend_many,
    decode_release,
    decode_release_many,
)

TAKE = KeyScope.TAKE


class LeasesApi:
    """`claim`, `extend` and `release`."""

    def __init__(self, parts: ApiParts) -> None:
        services = parts.services
        self._work, self._ids = services.work, services.ids
        self._guard = parts.guard
        self._endpoints = parts.endpoints
        self._answers = parts.answers
        self._packer = parts.packer
        self._limits = parts.limits

    def routes(self) -> list[Route]:
        settle = self._endpoints.change
        release = settle(self.release, optional=True)
        return [
            Route("POST", "/queues/{queue}/claim", settle(self.claim), TAKE),
            Route("POST", "/jobs/extend", settle(self.extend_many), TAKE),
            Route("POST", "/jobs/release", settle(self.release_many), TAKE),
            Route("POST", "/jobs/{id}/extend", settle(self.extend), TAKE),
            Route("POST", "/jobs/{id}/release", release, TAKE),
        ]

    async def claim(
        self, request: web.BaseRequest, accepted: BodyCodec, body: bytes, sent: BodyCodec
    ) -> Answer:
        """Take up to `max` jobs of one queue for `holder`: 200 with the list `jobs`.

        Each job has `lease`, which acknowledgements, extensions and releases name, and
        `lease_until`. There are fewer jobs if their payloads reach 8 MiB; a larger job comes alone.
        The lease lasts `lease_ms`. By default it lasts as long as the job or its queue says, or 30
        s. If there is no job, the answer waits up to `wait_ms` for one, and is then an empty list.
        """
        queue = check_name("queue", request[PATH]["queue"])
        wanted = decode_claim(body, sent)
        channel = channel_of(request)
        wait_ms = 0 if channel.half_closed else wanted.wait_ms
        claim = (queue, reach_of(request), wanted.most, wanted.terms, wait_ms)
        with (
            self._work.claimer(*claim) as claimer,
            self._guard.while_granted(request, claimer.give_up),
            when_peer_ends(channel, partial(self._work.hurry, claimer)),
        ):
            jobs = await claimer.take()
            size = sum([job.payload_size for job in jobs])
            # Refuse before payloads are read: the jobs are then returned.
            self._answers.admit(size)
            with self._answers.room(size):
                response = await self._render(jobs, accepted)
                jobs.clear()
                # Write the answer here, to learn whether the client is gone.
                await self._answers.write(request, response)
        return response

    async def _render(self, claimed: Sequence[JobRecord], accepted: BodyCodec) -> Answer:
        jobs = await self._work.large_payloads(claimed)
        return await self._packer.answer({"jobs": taken_documents(jobs, self._ids)}, accepted)

    async def extend(
        self, request: web.BaseRequest, accepted: BodyCodec, body: bytes, sent: BodyCodec
    ) -> Answer:
        """Set the deadline of one lease to `lease_ms` from now: 200 with `lease_until`."""
        lease, lease_ms = decode_extend(body, sent)
        key = held_key(request[PATH]["id"], self._ids)
        leases = {} if lease is None else {key: lease}
        done = await self._work.extend([key], leases, lease_ms, reach_of(request))
        raise_refusal(done.refused)
        return answer({"lease_until": done.until}, accepted)

    async def extend_many(
        self, request: web.BaseRequest, accepted: BodyCodec, body: bytes, sent: BodyCodec
    ) -> Answer:
        """Set the deadlines of many leases to `lease_ms` from now: 200 with their `lease_until`.

        The status 422 names the jobs that were left unchanged. The others have the new deadline.
        """
        named, lease_ms, resumed = decode_extend_many(body, sent, self._limits)
        keys = NamedKeys(named, self._ids)
        done = await self._work.extend(
            keys.known, keys.with_what(named), lease_ms, reach_of(request), resumed=resumed
        )
        if any(refused := keys.refused(done.refused)):
            return answer(refused._asdict() | {"lease_until": done.until}, accepted, 422)
        return answer({"lease_until": done.until}, accepted)

    async def release(
        self, request: web.BaseRequest, _accepted: BodyCodec, body: bytes, sent: BodyCodec
    ) -> Answer:
        """Return one job. No attempt is spent. It is ready at once, or scheduled in `delay_ms`."""
        lease, delay_ms = decode_release(body, sent)
        key = held_key(request[PATH]["id"], self._ids)
        leases = {} if lease is None else {key: lease}
        raise_refusal(await self._work.release([key], leases, delay_ms, reach_of(request)))
        return Answer(204)

    async def release_many(
        self, request: web.BaseRequest, accepted: BodyCodec, body: bytes, sent: BodyCodec
    ) -> Answer:
        """Return many jobs: 422 names the jobs that were left unchanged."""
        named, delay_ms = decode_release_many(body, sent, self._limits)
        keys = NamedKeys(named, self._ids)
        settled = await self._work.release(
            keys.known, keys.with_what(named), delay_ms, reach_of(request)
        )
        if any(refused := keys.refused(settled)):
            return answer(refused._asdict(), accepted, 422)
        return Answer(204)
