"""Pushes the jobs of one lane to its hub, in order, each exactly once.

While a request is under way, the jobs of the next one get their numbers and are packed, but not
sent: the hub takes them in their order. Jobs are complete here once it has answered.
"""

import asyncio
import contextlib
import logging
import random
from collections import deque
from typing import NamedTuple, NoReturn

from zq.client.errors import BackendError, concerns_jobs, concerns_numbers, cut_of
from zq.engine.engine import Engine
from zq.engine.inbox import PendingReply, result_of
from zq.engine.turns import end_task
from zq.features.forward.commands import Arrive, BeginEpoch, NameHeir, NumberLane, ReadLane
from zq.features.forward.engine import LaneBell
from zq.features.forward.model import (
    ForwardLane,
    LaneBatch,
    LaneFenced,
    LaneRefusal,
    is_of,
    is_unsent,
)
from zq.features.forward.peer_hub import Hub, PackedJobs, retry_after
from zq.features.forward.peer_presence import Presence
from zq.features.forward.service import LaneProgress, Lanes
from zq.features.forward.wire_sent import sent_jobs
from zq.features.producers.model import EpochEnd
from zq.model.errors import QueueFull, ZqError
from zq.service.services import Services
from zq.store.errors import StoreError

log = logging.getLogger("zq.forward")

IDLE_S = 15.0
"""A lane looks for jobs this often, even if nobody has told it of some."""

FIRST_PAUSE_S = 0.5
LONGEST_PAUSE_S = 30.0

SLICE = 256
"""So many jobs are turned into a body in one go: in about a millisecond."""


class _OtherNumbers(ZqError):
    """The hub and the lane have to agree on numbers again. Nothing is wrong with the hub."""

    code = "other_numbers"


class _Sent(NamedTuple):
    """A batch, and the request that carries it."""

    batch: LaneBatch
    request: asyncio.Task[None]


def pause_s(failures: int, asked: float, drawn: float) -> float:
    """The seconds until a lane tries again: what its hub has asked for, and a part of a bound.

    The bound doubles with each failure in a row. Many lanes may have lost the same hub at once, so
    each draws its part, from 0 to 1.
    """
    bound = min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2.0 ** min(failures, 16))
    return asked + drawn * bound


class LanePusher:
    """Carries one lane until it is stopped."""

    def __init__(self, services: Services, lane: ForwardLane) -> None:
        """`lane` says what is sent, and where. The hub sees a producer of this device."""
        engine: Engine = services.engine
        self._lanes = services[Lanes]
        self._work = services.work
        self._inbox = engine.inbox
        self._clock = engine.clock
        self._bell = engine[LaneBell]
        self._identity = services.store.at_start.epoch
        self.lane = lane
        self._presence = presence = services[Presence]
        self._producer = f"{presence.device}/{lane.name}"
        self._awake = asyncio.Event()
        """Set when there may be jobs."""
        self._hurried = asyncio.Event()
        self._compresses = lane.rule.compression == "gzip"
        self._is_new = True
        """True until it has begun an epoch of its own."""
        self._arriving: PendingReply[int] | None = None
        """The completion of the jobs that have arrived last."""
        self._task: asyncio.Task[None] | None = None

    @property
    def progress(self) -> LaneProgress:
        """How it goes."""
        return self._lanes.progress(self.lane.name)

    def start(self) -> None:
        if not self.lane.is_backlog:
            self._bell.watch(self._awake, self.lane.rule.patterns)
        self._task = asyncio.create_task(self._run(), name=f"zq-lane-{self.lane.name}")

    async def stop(self) -> None:
        """End. What is under way is sent again by the next one."""
        self._bell.forget(self._awake)
        await end_task(self._task)

    def hurry(self) -> None:
        """End a pause after an error, or after the start of the machine."""
        self._presence.hurry()
        self._hurried.set()

    async def _run(self) -> None:
        await self._presence.may_connect()
        failures = 0
        while True:
            hub: Hub | None = None
            arrived = self.progress.arrived
            try:
                hub = Hub(self.lane.rule, self._producer, compresses=self._compresses)
                await hub.check()
                epoch, again = await self._agree(hub)
                self._lanes.take_overs.discard(self.lane.name)
                await self._push(hub, epoch, again)
            except _OtherNumbers as error:
                log.info(error.message, extra={"fields": {"lane": self.lane.name}})
            except (ZqError, StoreError) as error:
                failures = 0 if self.progress.arrived > arrived else failures + 1
                await self._rest(error, failures)
            except Exception as error:
                log.error("a lane has failed and is tried again", exc_info=error)
                failures += 1
                await self._rest(error, failures)
            finally:
                if hub is not None:
                    await hub.close()

    async def _rest(self, error: Exception, failures: int) -> None:
        """Wait after an error: some time up to a doubling bound, and as long as the hub asks."""
        message = error.message if isinstance(error, ZqError) else str(error)
        code = error.code if isinstance(error, ZqError) else "internal"
        asked = retry_after(error) if isinstance(error, ZqError) else 0.0
        progress = self.progress
        if progress.error != message:
            log.warning(f"a lane waits: {message}", extra={"fields": {"lane": self.lane.name}})
        progress.state, progress.error, progress.error_code = "waiting", message, code
        progress.failure, progress.failed_at = message, self._clock.now_ms()
        pause = pause_s(failures, asked, random.random())
        progress.retry_at = progress.failed_at + round(1000 * pause)
        self._hurried.clear()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(pause):
                await self._hurried.wait()
        progress.retry_at = None

    # Agreeing

    async def _agree(self, hub: Hub) -> tuple[str, deque[LaneBatch]]:
        """Agree with the hub on the numbers. Return the epoch, and what is to be sent again."""
        found = await self._inbox.ask(ReadLane(self.lane.name))
        lane = found.lane
        end, asked = await hub.end(lane.epoch)
        if asked is not None:
            last = min(asked, lane.next - 1)
            await self._inbox.ask(Arrive(lane.name, lane.epoch, last))
        takes_over = lane.name in self._lanes.take_overs
        first = found.batches[0].first if found.batches else lane.next
        if end.epoch == lane.epoch:
            if end.last >= lane.next:
                self._say("the hub has more than this store knows of: it is older than it was", end)
            elif end.last < first - 1:
                self._say("the hub has less than it has acknowledged: it is older than it was", end)
            agrees = first - 1 <= end.last < lane.next
            left = [batch for batch in found.batches if batch.last > end.last]
            if agrees and not self._is_new and all(batch.is_whole for batch in left):
                return lane.epoch, deque(_behind(batch, end.last) for batch in left)
        elif not self._may_follow(lane, end):
            raise LaneFenced(self._producer, end.epoch, end.last)
        if self._is_new and not takes_over:
            await hub.meet(self._presence)
        await self._renew(hub, lane.epoch, 0, end)
        found = await self._inbox.ask(ReadLane(lane.name))
        return found.lane.epoch, deque(found.batches)

    def _may_follow(self, lane: ForwardLane, end: EpochEnd) -> bool:
        """True if this lane may follow an epoch that it is not in.

        It may be the lane's own one. This store has missed its beginning or, as an older backup of
        the one that went on, more than that; or the hub is an older backup.
        """
        if lane.may_follow(end.epoch, end.last):
            if end.last:
                self._say("the hub knows an earlier start: it is older than it was", end)
            return True
        if is_unsent(lane.epoch) and is_of(end.epoch, self._identity):
            # A lane of this name was dropped here.
            return True
        is_restored = not is_of(lane.epoch, self._identity)
        if is_restored and is_of(end.epoch, lane.epoch):
            self._say("this store was restored: the hub goes on where its former self ended", end)
            return True
        return lane.name in self._lanes.take_overs

    async def _renew(
        self, hub: Hub, epoch: str, last: int, end: EpochEnd, refusal: LaneRefusal | None = None
    ) -> None:
        """Begin a new epoch, behind what has arrived of the old one."""
        to = self._presence.new_epoch()
        await self._inbox.ask(NameHeir(self.lane.name, to))
        await hub.take_over(to, end)
        await self._inbox.ask(BeginEpoch(self.lane.name, epoch, last, to, refusal))
        self._is_new = False

    def _say(self, what: str, end: EpochEnd) -> None:
        fields = {"lane": self.lane.name, "epoch": end.epoch, "last": end.last}
        log.warning(what, extra={"fields": fields})

    # Pushing

    async def _push(self, hub: Hub, epoch: str, again: deque[LaneBatch]) -> None:
        """Push jobs until something is wrong. What is to be sent again comes first."""
        sent: _Sent | None = None
        try:
            while True:
                self._awake.clear()
                batch = again.popleft() if again else await self._next()
                packed = await self._packed(hub, epoch, batch) if batch.keys else None
                if sent is not None:
                    await self._finish(hub, epoch, sent)
                    sent = None
                if packed is None:
                    await self._doze()
                    continue
                self.progress.state = "sending"
                sent = _Sent(batch, asyncio.create_task(hub.store(packed)))
                if self.lane.rule.rate is not None:
                    await asyncio.sleep(len(batch.keys) / self.lane.rule.rate)
        finally:
            if sent is not None:
                sent.request.cancel()
                await asyncio.wait([sent.request])

    async def _next(self) -> LaneBatch:
        """The next jobs, with numbers. What has arrived meanwhile is in the same transaction."""
        most = self._presence.batch(self.lane.rule)
        batch = await self._inbox.ask(NumberLane(self.lane.name, most))
        arriving, self._arriving = self._arriving, None
        if arriving is not None:
            result_of(await arriving)
        return batch

    async def _packed(self, hub: Hub, epoch: str, batch: LaneBatch) -> PackedJobs:
        jobs = await self._work.large_payloads(batch.jobs)
        if len(jobs) < len(batch.keys):
            raise _OtherNumbers("a job with a number is gone: the others get new numbers")
        parts: list[bytes] = []
        for start in range(0, len(jobs), SLICE):
            if start:
                await asyncio.sleep(0)
            parts.append(sent_jobs(jobs[start : start + SLICE], batch.steady))
        return await hub.packed(epoch, batch.first, b",".join(parts))

    async def _doze(self) -> None:
        """Wait until there may be jobs again."""
        self.progress.state = "idle"
        self.progress.error = self.progress.error_code = None
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(IDLE_S):
                await self._awake.wait()

    async def _finish(self, hub: Hub, epoch: str, sent: _Sent) -> None:
        """Wait for the answer to a request, and complete its jobs."""
        try:
            await sent.request
        except ZqError as error:
            await self._sift(hub, epoch, sent.batch, error)
        else:
            self._arrive(hub, epoch, sent.batch)

    async def _sift(self, hub: Hub, epoch: str, batch: LaneBatch, error: ZqError) -> NoReturn:
        """Find the job because of which a request was refused, and let it die.

        The jobs before it arrive. Those behind it have lost their numbers, and are numbered again.
        A hub whose queue is full gets as many jobs as it has room for. Other errors are raised.
        """
        parts = [batch]
        while parts:
            batch = parts.pop(0)
            if concerns_numbers(error):
                raise _OtherNumbers(f"the hub has other numbers: {error.message}")
            if isinstance(error, BackendError) and error.status == 415 and self._compresses:
                self._compresses = False
                raise _OtherNumbers("the hub takes no compressed bodies: they are sent as they are")
            is_alone = len(batch.keys) == 1
            if not concerns_jobs(error) and (is_alone or error.code != QueueFull.code):
                raise error
            if is_alone:
                break
            cut = cut_of(error, len(batch.keys))
            parts = [batch.part(0, cut), batch.part(cut), *parts]
            while parts:
                try:
                    await hub.store(await self._packed(hub, epoch, parts[0]))
                except ZqError as again:
                    error = again
                    break
                self._arrive(hub, epoch, parts.pop(0))
        else:
            raise _OtherNumbers("the hub takes in parts what it has refused as a whole")
        refusal = LaneRefusal(batch.first, error.message, error.code)
        fields = {"lane": self.lane.name, "job": batch.keys[0], "error": error.message}
        log.error("the hub refuses a job, which is dead here", extra={"fields": fields})
        last = batch.first - 1
        await self._renew(hub, epoch, last, EpochEnd(epoch, last), refusal)
        self.progress.refused += 1
        raise _OtherNumbers("a job was refused: those behind it get new numbers")

    def _arrive(self, hub: Hub, epoch: str, batch: LaneBatch) -> None:
        """Have the jobs of a batch completed by the next tick."""
        self._arriving = self._inbox.submit(Arrive(self.lane.name, epoch, batch.last))
        progress = self.progress
        progress.arrived += len(batch.keys)
        progress.sent_bytes += hub.sent_bytes
        hub.sent_bytes = 0
        progress.succeeded_at = self._clock.now_ms()
        progress.error = progress.error_code = None


def _behind(batch: LaneBatch, last: int) -> LaneBatch:
    """The jobs of a batch with larger numbers than the last one that has arrived."""
    return batch.part(max(0, last + 1 - batch.first))
