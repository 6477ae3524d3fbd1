"""Folding for enqueues: a quick lane, a slow lane, and the limits of their processes.

While one round asks jq and waits for its tick, the next one gathers, as ticks do. A round reads the
hosts of its batches once. It plans each request as if all plans before it had been carried out. The
tick does what is still valid, and the next round plans the rest again. So nothing is locked while
jq runs, and a fold is as atomic as the command that brings it.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any, Self

from zq.engine.engine import Engine, RunningPart
from zq.engine.inbox import Inbox, PayloadCheck, result_of
from zq.features.batches.engine_jq import (
    Evaluator,
    FoldRequest,
    Host,
    JqFolds,
    Programs,
    TooSlow,
    Wrap,
    by_rule,
    programs_of,
    stored_host,
)
from zq.features.batches.engine_planner import Hosts, Order, Planner, too_large
from zq.features.batches.model import BatchRule
from zq.features.batches.model_jobs import StalePlan, batch_of
from zq.features.batches.store import HostReads
from zq.model.clock import Clock
from zq.model.commands import EnqueueResult
from zq.model.errors import InvalidRequest, ServiceUnavailable, Unprocessable, ZqError, unexpected
from zq.model.job import NewJob
from zq.model.reach import Reach

log = logging.getLogger(__name__)

MOST_REQUESTS = 512
MOST_BYTES = 8 * 1024 * 1024
"""The most bytes of a round, unless a single request is larger."""

MOST_TRIES = 100
"""The most times that a request is planned because its batches have changed."""

SLOW_S = 60.0
"""The time for which it is remembered that a rule was too slow, in seconds."""

MOST_SLOW = 1024


class FoldLane:
    """Folds requests, round after round. Slow requests go to the `slower` lane.

    The slower lane takes one request at a time. It refuses those that have waited there for longer
    than `patience` seconds.
    """

    def __init__(
        self,
        reads: HostReads,
        inbox: Inbox,
        clock: Clock,
        folds: JqFolds,
        *,
        max_payload: int,
        checks: Sequence[PayloadCheck],
        patience: float,
        slower: "FoldLane | None" = None,
    ) -> None:
        self._reads = reads
        self._inbox = inbox
        self._clock = clock
        self._folds = folds
        self._evaluator = Evaluator(folds, max_payload, checks)
        self._patience = patience
        self._slower = slower
        self._slow: dict[Programs, float] = {}
        """The rules that were too slow here, and until when that is remembered."""
        self._waiting: deque[FoldRequest] = deque()
        self._task: asyncio.Task[None] | None = None
        self._closed = False

    def put(self, request: FoldRequest) -> None:
        """Accept a request. The tick's result becomes its `reply`."""
        self._waiting.append(request)
        if self._task is None:
            self._task = asyncio.create_task(self._run(), name="zq-folds")

    async def fault_of(self, rule: BatchRule, payload: str) -> str:
        """The fault of a rule, tried with a payload on both sides; an empty text means none."""
        try:
            (fault,) = await self._evaluator.check(programs_of(rule), [payload])
        except TooSlow as error:
            if self._slower is not None:
                return await self._slower.fault_of(rule, payload)
            return f"batch dry-run: {error}"
        return fault

    async def close(self) -> None:
        """End the process, and tell those who wait that the server is stopping."""
        self._closed = True
        await self._folds.close()
        if self._task is not None:
            await self._task

    async def _run(self) -> None:
        while self._waiting:
            requests = self._gather()
            try:
                await self._round(requests)
            except Exception as error:
                refusal = error if isinstance(error, ZqError) else unexpected(error)
                if refusal is not error:
                    log.error("jobs could not be folded", exc_info=error)
                for request in requests:
                    if request.lane is self:
                        self._end(request, refusal)
        self._task = None

    def _gather(self) -> list[FoldRequest]:
        """The requests of the next round, at least one."""
        most = MOST_REQUESTS if self._slower is not None else 1
        requests: list[FoldRequest] = []
        total = 0
        while self._waiting and len(requests) < most:
            total += self._waiting[0].size
            if requests and total > MOST_BYTES:
                break
            request = self._waiting.popleft()
            request.lane = self
            requests.append(request)
        return requests

    async def _round(self, requests: list[FoldRequest]) -> None:
        for request in requests:
            self._refuse_late(request)
        await self._check(self._left(requests))
        hosts = await self._read(self._left(requests))
        left = self._left(requests)
        large = [request for request in left if not request.members.keys() <= hosts.keys()]
        if large:
            self._again(large)
        planner = Planner(self._evaluator, hosts, self._end, self._put_off)
        await self._submit(await planner.plan(self._left(requests)))

    def _left(self, requests: Sequence[FoldRequest]) -> list[FoldRequest]:
        """The requests that are neither answered nor in another lane."""
        return [request for request in requests if request.lane is self]

    def _refuse_late(self, request: FoldRequest) -> None:
        if self._closed:
            self._end(request, ServiceUnavailable("the server is stopping"))
        elif request.deadline is not None and _now() > request.deadline:
            self._end(
                request,
                ServiceUnavailable(
                    "folds that take long were before this one: try again, or make them cheaper"
                ),
            )

    async def _check(self, requests: Sequence[FoldRequest]) -> None:
        """Try each rule in the requests on the payload of its job."""
        for programs, uses in by_rule([r for r in requests if not r.is_checked]).items():
            if self._is_slow(programs):
                self._put_off([use.request for use in uses], None)
            going = [use for use in uses if use.request.lane is self]
            if not going:
                continue
            payloads = [use.request.jobs[use.place].payload for use in going]
            try:
                faults = await self._evaluator.check(programs, payloads)
            except TooSlow as error:
                self._remember(programs)
                self._put_off([use.request for use in going], None, f"batch dry-run: {error}")
                continue
            for use, fault in zip(going, faults, strict=True):
                if fault and use.request.lane is self:
                    self._end(use.request, use.request.refusal(use.place, fault))
        for request in self._left(requests):
            request.is_checked = True

    async def _read(self, requests: Sequence[FoldRequest]) -> Hosts:
        """The hosts of the requests' batches. If large, only those of the first requests."""
        keys = list(dict.fromkeys(key for request in requests for key in request.members))
        if not keys:
            return {}
        found = await self._reads.open_hosts(keys, self._clock.now_ms())
        if not requests[0].members.keys() <= found.keys():
            # The first request alone needs more hosts than one read allows.
            self._end(requests[0], too_large())
        return {key: stored_host(host) for key, host in found.items()}

    async def _submit(self, orders: Sequence[Order]) -> None:
        """Submit commands, and pass their results on to the requests."""
        pending = []
        for order in orders:
            for request in order.requests:
                self._inbox.let_go(len(request.jobs), request.size)
                request.is_held = False
            try:
                self._inbox.check_open()
                pending.append((order, self._inbox.submit(order.command)))
            except ServiceUnavailable as error:
                for request in order.requests:
                    self._end(request, error)
        stale: list[FoldRequest] = []
        for order, reply in pending:
            result = await reply
            if isinstance(result, StalePlan):
                stale += order.requests
                order.learn(result)
            else:
                for index, request in enumerate(order.requests):
                    self._end(request, order.part(result, index))
        for request in stale:
            request.tries += 1
            if request.tries > MOST_TRIES:
                self._end(request, ServiceUnavailable("the batch changes too fast: try again"))
        self._again(self._left(stale))

    def _again(self, requests: Sequence[FoldRequest]) -> None:
        """Put requests at the start of the next round."""
        for request in requests:
            request.lane = None
            if not request.is_held:
                self._inbox.hold(len(request.jobs), request.size)
                request.is_held = True
        self._waiting.extendleft(reversed(requests))

    def _put_off(
        self,
        requests: Sequence[FoldRequest],
        host: Host | None,
        reason: str = "batch fold: it takes too long",
    ) -> None:
        """Give requests to the slower lane. Refuse them if there is none."""
        if host is not None:
            self._remember(programs_of(host.rule))
        for request in requests:
            if request.lane is not self:
                continue
            if self._slower is None:
                self._end(request, Unprocessable(reason))
            else:
                request.lane = None
                request.deadline = _now() + self._patience
                self._slower.put(request)

    def _is_slow(self, programs: Programs) -> bool:
        return self._slower is not None and self._slow.get(programs, 0.0) > _now()

    def _remember(self, programs: Programs) -> None:
        self._slow.pop(programs, None)
        self._slow[programs] = _now() + SLOW_S
        if len(self._slow) > MOST_SLOW:
            del self._slow[next(iter(self._slow))]

    def _end(self, request: FoldRequest, reply: object) -> None:
        request.lane = None
        if request.is_held:
            self._inbox.let_go(len(request.jobs), request.size)
            request.is_held = False
        request.answer(reply)


def _now() -> float:
    return asyncio.get_running_loop().time()


QUICK = 1 / 8
"""A call in the first lane gets this part of the time-out."""


class Folding(RunningPart):
    """Enqueues jobs with batches. `timeout` (seconds) limits a fold, `max_payload` its bytes.

    The payloads that folds make have to pass the `checks` of new ones.

    The first enqueue with a batch starts jq.
    """

    @classmethod
    def of(cls, engine: Engine) -> Self:
        """Folding by the limits of the settings."""
        return cls(
            engine.store.reads.of(HostReads),
            engine.inbox,
            engine.clock,
            engine.admission.checks,
            timeout=engine.settings.filter_timeout / 1000,
            max_payload=engine.settings.max_payload,
        )

    def __init__(
        self,
        reads: HostReads,
        inbox: Inbox,
        clock: Clock,
        checks: Sequence[PayloadCheck],
        *,
        timeout: float,
        max_payload: int,
    ) -> None:
        self._inbox = inbox
        slow = FoldLane(
            *(reads, inbox, clock, JqFolds(seconds=timeout)),
            max_payload=max_payload,
            checks=checks,
            patience=timeout,
        )
        quick = FoldLane(
            *(reads, inbox, clock, JqFolds(seconds=timeout * QUICK)),
            max_payload=max_payload,
            checks=checks,
            patience=timeout,
            slower=slow,
        )
        self._lanes = (quick, slow)

    async def enqueue(
        self, keys: Sequence[int], jobs: Sequence[NewJob], now: int, size: int, reach: Reach
    ) -> EnqueueResult:
        """Store jobs, some of which come with batches, or fold them: all or none, in order.

        Raises the errors of an `Enqueue`, `Unprocessable` if a rule or a fold fails, `InboxFull` or
        `ServiceUnavailable`. If the caller is cancelled, only the answer is lost: the jobs are
        stored.
        """
        result: EnqueueResult = await self._ask(FoldRequest(keys, jobs, now, size, reach))
        return result

    async def fire(self, key: int, job: NewJob, now: int, reach: Reach, wrap: Wrap) -> int:
        """Enqueue or fold a job of cron by the `Fire` that `wrap` makes. Return its result."""
        request = FoldRequest((key,), (job,), now, job.payload_size, reach, wrap)
        moved: int = await self._ask(request)
        return moved

    async def check(self, jobs: Iterable[NewJob]) -> None:
        """Try the rules of jobs that will be enqueued later. Raises `InvalidRequest`."""
        for job in jobs:
            rule = batch_of(job)
            if rule is not None and (fault := await self._lanes[0].fault_of(rule, job.payload)):
                raise InvalidRequest(fault)

    async def _ask(self, request: FoldRequest) -> Any:
        self._inbox.check_open()
        self._inbox.check_room()
        self._inbox.hold(len(request.jobs), request.size)
        self._lanes[0].put(request)
        return result_of(await request.reply)

    async def stop(self) -> None:
        """Tell those who wait that the server is stopping, and end the processes."""
        await asyncio.gather(*(lane.close() for lane in self._lanes))


RUNNING = (Folding,)
