"""The way back from one hub: fetches the jobs that are for this device, and reports meanwhile.

A fetch waits at the hub until there is something, for as long as the time between two reports, and
brings the report with it. So a device that is idle costs its line one small request in that time,
and yet has what is sent to it at once.

Jobs are stored here under the hub's numbers, as those of a producer, in one transaction with the
last number. The next fetch tells that number, and with that they are complete at the hub. So it
does not matter when either side ends, or which answers are lost.
"""

import asyncio
import contextlib
import logging
import random
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import NamedTuple

import msgspec
from msgspec import Raw

from zq.client.errors import BackendError
from zq.client.http.aio import AioTransport
from zq.client.http.backend import HttpBackend
from zq.engine.turns import end_task
from zq.features.devices.client import FetchBody, FetchedDocument, FetchRefusal, ServerDevices
from zq.features.devices.model import USUAL_EVERY_MS
from zq.features.forward.engine import SyncBell
from zq.features.forward.model import LaneRule
from zq.features.forward.peer_hub import NewsTeller, address_of
from zq.features.forward.peer_presence import Presence
from zq.features.forward.service import Hubs
from zq.features.producers.model import (
    EnqueueInOrder,
    EpochEnd,
    Producer,
    ProducerFenced,
    ProducerMark,
    SequenceGap,
    TooManyProducers,
)
from zq.features.producers.store import ProducerReads
from zq.model.errors import Internal, LimitReached, ServiceUnavailable, StorageFull, ZqError
from zq.model.job import NewJob
from zq.model.reach import EVERYWHERE
from zq.service.services import Services
from zq.store.errors import StoreError
from zq.wire.bodies import Limits, decode_job
from zq.wire.codecs import JSON

log = logging.getLogger("zq.forward")

HOLD_MS = USUAL_EVERY_MS
"""For how long a fetch waits at the hub, and how often this device reports."""

FIRST_PAUSE_S = 0.5
LONGEST_PAUSE_S = HOLD_MS / 1000
"""A line that ends each fetch early costs no more than one that does not."""

SLICE = 256
"""So many jobs are checked in one go: in about a millisecond."""

NO_FAULT_OF_JOBS = (
    *(ServiceUnavailable, LimitReached, StorageFull, Internal, StoreError),
    *(SequenceGap, ProducerFenced, TooManyProducers),
)
"""What keeps this server from storing any jobs for a time. All else is wrong with one of them."""


class Pause:
    """A pause after an error. `end` ends it."""

    def __init__(self) -> None:
        self._ended = asyncio.Event()

    def clear(self) -> None:
        """Begin one that nothing has ended yet."""
        self._ended.clear()

    def end(self) -> None:
        self._ended.set()

    async def over(self) -> None:
        """Return once it is ended."""
        await self._ended.wait()

    async def rest(self, error: Exception, failures: int) -> None:
        """Wait, some time up to a bound that doubles with each failure.

        What the hub refuses to this key, or does not know, is asked for as seldom as may be.
        """
        bound = min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2.0 ** min(failures, 16))
        if isinstance(error, BackendError) and error.status in (403, 404, 405, 422):
            bound = LONGEST_PAUSE_S
        self.clear()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(random.uniform(0.0, bound)):
                await self.over()


class _Checked(NamedTuple):
    """The jobs of an answer up to the first one that this server cannot store, and why."""

    jobs: list[NewJob]
    refusal: FetchRefusal | None = None


class HubLink:
    """Fetches from one hub until it is stopped."""

    def __init__(self, services: Services, rule: LaneRule) -> None:
        """The rule names the hub, and what this device shows it."""
        assert rule.url is not None
        self.rule = rule
        self.progress = services[Hubs].at(rule.url)
        self._presence = services[Presence]
        self._producers = services.store.reads.of(ProducerReads)
        self._jobs = services.jobs
        self._clock = services.clock
        self._synced = services.engine[SyncBell]
        settings = services.settings
        self._limits = Limits(settings.max_body, settings.max_payload, settings.max_bulk_items)
        self._name = f"hub:{rule.url.split('/')[2]}"[:128]
        """The hub as a producer of jobs here."""
        self._refusal: FetchRefusal | None = None
        """Why the job behind the last number cannot be stored. The hub has to know."""
        self._reported_at = 0.0
        self._news = NewsTeller(self._presence, rule, services.clock)
        self._pause = Pause()
        self.when_met: list[Callable[[], Awaitable[None]]] = []
        """Called when the hub has been told of this device. It may be an older state of itself."""
        self._task: asyncio.Task[None] | None = None

    @property
    def device(self) -> str:
        """The name of this device at the hub."""
        return self._presence.device

    @property
    def instance(self) -> str:
        """The name of this start of the device."""
        return self._presence.instance

    def start(self) -> None:
        self._news.start()
        self._presence.when_heard.append(self._hear)
        self._task = asyncio.create_task(self._run(), name=f"zq-{self._name}")

    async def stop(self) -> None:
        """End. What was fetched and is not stored is fetched again."""
        await self._news.stop()
        self._presence.when_heard.remove(self._hear)
        await end_task(self._task)

    def hurry(self) -> None:
        """End a pause after an error."""
        self._pause.end()

    def _hear(self, url: str) -> None:
        """A pause is long where a hub was away for long. A lane may find it first."""
        if url == self.progress.url:
            self.hurry()

    async def _run(self) -> None:
        await self._presence.may_connect()
        failures = 0
        while True:
            transport: AioTransport | None = None
            began = self._clock.monotonic()
            fetched = self.progress.fetched
            try:
                address = address_of(self.rule)
                transport = AioTransport(address)
                devices = ServerDevices(HttpBackend(address, transport).ask)
                await self._meet(devices)
                while True:
                    await self._fetch(devices)
            except (ZqError, StoreError) as error:
                held = self._clock.monotonic() - began >= LONGEST_PAUSE_S
                failures = 0 if held or self.progress.fetched > fetched else failures + 1
                await self._rest(error, failures)
            except Exception as error:
                log.error("the way back has failed and is tried again", exc_info=error)
                failures += 1
                await self._rest(error, failures)
            finally:
                if transport is not None:
                    await transport.close()

    async def _meet(self, devices: ServerDevices) -> None:
        await self._presence.tell(devices, self.progress.url)
        for meet in self.when_met:
            await meet()
        self._reported_at = self._clock.monotonic()
        self.progress.state = "listening"

    async def _rest(self, error: Exception, failures: int) -> None:
        """Wait after an error, some time up to a doubling bound."""
        progress = self.progress
        message = error.message if isinstance(error, ZqError) else str(error)
        if progress.error != message:
            fields = {"hub": progress.url}
            log.warning(f"nothing comes back from a hub: {message}", extra={"fields": fields})
        progress.state, progress.error = "waiting", message
        progress.error_code = error.code if isinstance(error, ZqError) else "internal"
        progress.failed_at = self._clock.now_ms()
        await self._pause.rest(error, failures)

    async def _fetch(self, devices: ServerDevices) -> None:
        """Tell what is stored, get what comes next, and store it."""
        known = await self._producers.producer(self._name)
        began = self._clock.monotonic()
        is_due = began - self._reported_at >= LONGEST_PAUSE_S
        report = await self._presence.report(self.progress.url) if is_due else None
        body = FetchBody(
            self._presence.instance,
            None if known is None else known.epoch,
            0 if known is None else known.last,
            0 if self._refusal else HOLD_MS,
            refused=self._refusal,
            report=report,
        )
        found = await devices.fetch(self._presence.device, body)
        self._presence.note(self.progress.url, report, found.batch)
        if is_due:
            self._reported_at = began
        self._refusal = None
        self.progress.succeeded_at = self._clock.now_ms()
        self.progress.error = self.progress.error_code = None
        items = msgspec.json.decode(found.jobs, type=list[Raw])
        if items:
            await self._store(found, items, known)
        elif body.wait_ms and self._clock.monotonic() - began < HOLD_MS / 2000:
            # It stops, or somebody else asks for this device as well.
            raise BackendError(f"{self.progress.url} lets nobody wait")

    async def _store(
        self, found: FetchedDocument, items: Sequence[Raw], known: Producer | None
    ) -> None:
        """Store the jobs of an answer up to one that cannot be stored."""
        assert found.epoch is not None
        other = known is not None and known.epoch != found.epoch
        after = EpochEnd(known.epoch, known.last) if known is not None and other else None
        mark = ProducerMark(self._name, found.epoch, found.seq, after)
        jobs, refusal = await self._checked(items)
        refusal = await self._store_some(mark, jobs) or refusal
        if refusal is not None:
            self.progress.refused += 1
            log.error(f"a job of the hub is refused: {refusal.message}")
        self._refusal = refusal
        await self._synced.wait()

    async def _store_some(self, mark: ProducerMark, jobs: Sequence[NewJob]) -> FetchRefusal | None:
        """Store jobs together. If one of them is refused, store those before it, and say why.

        A new epoch begins even without jobs: the refusal names a number of it.
        """
        try:
            await self._enqueue(mark, jobs)
        except NO_FAULT_OF_JOBS:
            raise
        except ZqError as error:
            if len(jobs) == 1:
                await self._enqueue(mark, [])
                return _refusal(error)
        else:
            return None
        for at, job in enumerate(jobs):
            own = msgspec.structs.replace(mark, seq=mark.seq + at)
            refusal = await self._store_some(own, [job])
            if refusal is not None:
                return refusal
        return None

    async def _enqueue(self, mark: ProducerMark, jobs: Sequence[NewJob]) -> None:
        through = partial(EnqueueInOrder, mark=mark)
        await self._jobs.enqueue(jobs, EVERYWHERE, through=through)
        self.progress.fetched += len(jobs)

    async def _checked(self, items: Sequence[Raw]) -> _Checked:
        jobs: list[NewJob] = []
        for at, item in enumerate(items):
            if at and at % SLICE == 0:
                await asyncio.sleep(0)
            try:
                jobs.append(decode_job(bytes(item), JSON, self._limits))
            except ZqError as error:
                return _Checked(jobs, _refusal(error))
        return _Checked(jobs)


def _refusal(error: ZqError) -> FetchRefusal:
    return FetchRefusal(error.message[:2_000], error.code[:64])
