"""The verbs about queue topics: their records are jobs, claimed and settled by their numbers.

A verb reads which jobs are meant, and names each delivery to the verbs of workers. So what has
changed in between is left alone, and counts as skipped.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from typing import NamedTuple, Self

from zq.doors.topics.commands import (
    Append,
    ForgetNumbers,
    LayAside,
    NumberJobs,
    RecordsDeleted,
    TopicDeleted,
)
from zq.doors.topics.errors import NotAQueue, TopicNotEmpty, TopicNotFound
from zq.doors.topics.model import (
    DEFAULT_CONFIG,
    LEAST_LEASE_MS,
    MOST_LEASE_MS,
    SLICE,
    TagMatch,
    TopicState,
    check_topic,
)
from zq.doors.topics.model_jobs import (
    MOST_DELAY_MS,
    HeldRecord,
    JobsWanted,
    Labels,
    Selection,
    check_selection,
    chosen,
    dead_letter,
    dealt,
    is_worn_out,
    rest_ms,
)
from zq.doors.topics.service import Topics
from zq.doors.topics.store import TopicReads
from zq.engine.delivery.takers import Claimer, unclaimed
from zq.engine.delivery.windows import ClaimWindow
from zq.engine.inbox import Inbox
from zq.model.clock import Clock
from zq.model.commands import DeleteSlice
from zq.model.errors import ZqError
from zq.model.filters import Filter
from zq.model.ids import Mint
from zq.model.job import JobRecord
from zq.model.leasing import Terms
from zq.model.reach import EVERYWHERE, Reach
from zq.model.settling import Completion
from zq.service.queues import SharedReads
from zq.service.services import Services
from zq.service.work import Work
from zq.store.api import Store
from zq.store.errors import StoreError

log = logging.getLogger(__name__)


class RecordClaim:
    """A claim under way of up to `most` records."""

    def __init__(
        self,
        topic: TopicState,
        reach: Reach,
        most: int,
        lease_ms: int,
        begin: Callable[[int, int], Claimer],
    ) -> None:
        self.topic = topic
        self.reach = reach
        self.most = most
        self.lease_ms = lease_ms
        self._begin = begin
        self._latest: Claimer | None = None
        self._is_over = False

    def give_up(self) -> None:
        """End the claim early: it gets no more records."""
        self._is_over = True
        if self._latest is not None:
            self._latest.give_up()

    async def more(self, most: int, wait_ms: int) -> list[JobRecord]:
        """Jobs that come within a time. They go back where the claim's context fails."""
        if self._is_over:
            return []
        self._latest = self._begin(most, wait_ms)
        return await self._latest.take()


class ClaimedRecord(NamedTuple):
    """A job that was given to a node, with its number and labels in the topic."""

    job: JobRecord
    labels: Labels
    deadline: int
    """When its lease ends, in milliseconds since the epoch."""


class Decided(NamedTuple):
    """The fate of the records that a request named, and the topic after that.

    `flush_ms` is how long an answer has waited for the disk, of a topic that asks for that.
    """

    done: list[int]
    skipped: list[int]
    topic: TopicState
    deadline: int = 0
    flush_ms: float = 0.0


class QueueTopics:
    """Queue topics by name. A name out of reach is refused: `QueueOutOfReach`."""

    @classmethod
    def of(cls, services: Services) -> Self:
        """The queues of a server as topics."""
        engine, topics = services.engine, services[Topics]
        return cls(engine.store, engine.clock, engine.inbox, topics, services.work, engine.mint)

    def __init__(
        self, store: Store, clock: Clock, inbox: Inbox, topics: Topics, work: Work, mint: Mint
    ) -> None:
        self._reads = store.reads.of(TopicReads)
        self._clock = clock
        self._inbox = inbox
        self._topics = topics
        self._work = work
        self._mint = mint
        self._cohorts = Cohorts(clock, self._count_ready)
        self._states = SharedReads(self._state)
        self._refusals = DeadLetterRefusals(clock)
        self.until_dropped = topics.until_dropped
        """Has a function called within a context whenever a topic is deleted."""

    async def get(self, name: str, reach: Reach) -> TopicState:
        """A queue as it stands for workers. Raises `TopicNotFound` or `NotAQueue`."""
        reach.require([check_topic(name)])
        state = await self._states.get(name)
        if state is None:
            raise TopicNotFound(name)
        if state.config.type != "queue":
            raise NotAQueue(name)
        return state

    async def share(self, topic: TopicState, most: int) -> int:
        """How many records a claim may take. Where the topic says so, it waits for other claims."""
        window_ms = topic.config.claim_jitter_ms
        if not window_ms:
            return most
        return await self._cohorts.share(str(topic.name), most, window_ms)

    def in_cohort(self, name: str) -> int:
        """How many claims wait there for others."""
        return self._cohorts.waiting(name)

    @contextmanager
    def claiming(
        self,
        topic: TopicState,
        node: str,
        most: int,
        lease_ms: int | None,
        reach: Reach,
        window: ClaimWindow | None = None,
    ) -> Iterator[RecordClaim]:
        """A claim of up to `most` records for a node, within the context.

        Where the context ends with an exception, the jobs are given back at once. The jobs count in
        a `window`, if there is one.
        """
        usual = topic.config.lease_ms if lease_ms is None else lease_ms
        length = min(max(usual, LEAST_LEASE_MS), MOST_LEASE_MS)
        terms = Terms(length, node)
        with ExitStack() as claims:

            def begin(most: int, wait_ms: int) -> Claimer:
                claimer = self._work.claimer(str(topic.name), reach, most, terms, wait_ms, window)
                return claims.enter_context(claimer)

            yield RecordClaim(topic, reach, most, length, begin)

    async def take(self, claim: RecordClaim, wait_ms: int = 0) -> list[ClaimedRecord]:
        """The records of a claim, by number, as soon as there is one.

        Those that were delivered too often go to the dead-letter topic, or rest where that refuses
        them, and others come for them.
        Raises `TopicNotFound` or `NotAQueue` where the topic has gone while the claim has waited.
        """
        taken: list[ClaimedRecord] = []
        while len(taken) < claim.most:
            found = await claim.more(claim.most - len(taken), 0 if taken else wait_ms)
            jobs = await self._work.large_payloads(found)
            if not jobs:
                break
            if wait_ms and not taken:
                # Its config may have changed meanwhile, and the name may be that of another topic.
                claim.topic = await self.get(str(claim.topic.name), claim.reach)
            labels = await self._labels(claim.topic, jobs)
            config = claim.topic.config
            worn = [job for job in jobs if is_worn_out(job, config)]
            taken += [
                ClaimedRecord(job, labels[job.key], (job.dequeued_at or 0) + claim.lease_ms)
                for job in jobs
                if not is_worn_out(job, config)
            ]
            if not worn or not await self._lay_aside(claim.topic, worn, labels):
                break
        return sorted(taken, key=_number)

    def give_back(self, leases: Mapping[int, int]) -> None:
        """Return deliveries whose worker is gone, as far as they have not ended."""
        if leases:
            self._inbox.give_back(unclaimed(dict(leases)))

    async def ack(self, name: str, wanted: Selection, reach: Reach) -> Decided:
        """Say that records are done: they are gone."""
        topic, held = await self._held(name, wanted, reach)
        said = {each.key: Completion(lease=each.delivery) for each in held.values()}
        keys = list(said)
        began = time.perf_counter()
        durable = topic.config.durability == "fsync"
        # One tick does both.
        refused, _ = await asyncio.gather(
            self._work.succeed(keys, reach, said), self._inbox.ask(ForgetNumbers(keys, durable))
        )
        done = [key for key in keys if key not in refused.missing | refused.stale]
        flush_ms = (time.perf_counter() - began) * 1000 if durable else 0.0
        decided = await self._decided(topic, wanted, held, set(done), reach)
        return decided._replace(flush_ms=flush_ms)

    async def nack(self, name: str, wanted: Selection, delay_ms: int, reach: Reach) -> Decided:
        """Return records, to be claimed again at once or after a delay."""
        topic, held = await self._held(name, wanted, reach)
        leases = {each.key: each.delivery for each in held.values()}
        delay = min(max(delay_ms, 0), MOST_DELAY_MS)
        refused = await self._work.release(list(leases), leases, delay, reach)
        done = leases.keys() - refused.missing - refused.stale
        return await self._decided(topic, wanted, held, done, reach)

    async def extend(self, name: str, wanted: Selection, lease_ms: int, reach: Reach) -> Decided:
        """Let leases end `lease_ms` from now, sooner or later than they would."""
        topic, held = await self._held(name, wanted, reach)
        leases = {each.key: each.delivery for each in held.values()}
        length = min(max(lease_ms, LEAST_LEASE_MS), MOST_LEASE_MS)
        deadline = self._clock.now_ms() + length
        told = await self._work.extend(list(leases), leases, length, reach)
        done = leases.keys() - told.refused.missing - told.refused.stale
        decided = await self._decided(topic, wanted, held, done, reach)
        return decided._replace(deadline=deadline)

    async def delete_records(
        self, name: str, match: TagMatch | None, before: int | None, reach: Reach
    ) -> RecordsDeleted:
        """Delete the records of a queue or a log that match, of those that there are by now.

        Of a queue, whoever holds them. Raises `TopicNotFound`.
        """
        topic = await self._topics.get(name, reach)
        if topic.config.type == "log":
            return await self._topics.delete_records(name, match, before, reach)
        upto = topic.head_seq if before is None else min(topic.head_seq, before - 1)
        of_queue = Filter(queues=(name,), reach=reach)
        deleted = 0
        while keys := await self._reads.numbered(topic, JobsWanted(upto, match, SLICE)):
            deleted += await self._inbox.ask(DeleteSlice(keys=keys, filter=of_queue))
            await self._inbox.ask(ForgetNumbers(keys))
        # Somebody may have made it a log meanwhile.
        now = await self._topics.get(name, reach)
        return RecordsDeleted(deleted, topic.head_seq, True, now)

    async def drop(self, name: str, reach: Reach, *, if_empty: bool = False) -> TopicDeleted:
        """Delete a topic, and of a queue the jobs that have numbers. Raises `TopicNotEmpty`."""
        while True:
            with suppress(TopicNotFound):
                topic = await self._topics.get(name, reach)
                if topic.config.type == "queue":
                    if if_empty and topic.count:
                        raise TopicNotEmpty(name, topic.count)
                    if not if_empty:
                        await self.delete_records(name, None, None, reach)
            try:
                return await self._topics.delete(name, reach, if_empty=if_empty)
            except TopicNotEmpty:
                # Of a queue, somebody has appended meanwhile.
                if if_empty:
                    raise

    async def _state(self, name: str) -> TopicState | None:
        return await self._reads.topic(name, self._clock.now_ms(), hurried=True)

    async def _count_ready(self, name: str) -> int:
        return (await self.get(name, EVERYWHERE)).ready

    async def _labels(self, topic: TopicState, jobs: Sequence[JobRecord]) -> dict[int, Labels]:
        """Numbers of jobs. One that came by another way gets its number now."""
        keys = [job.key for job in jobs]
        known = await self._reads.labels(topic, keys)
        if missing := [key for key in keys if key not in known]:
            given = await self._inbox.ask(NumberJobs(str(topic.name), missing))
            known |= {key: Labels(seq, None, None) for key, seq in given.items()}
        return known

    async def _lay_aside(
        self, topic: TopicState, jobs: Sequence[JobRecord], labels: dict[int, Labels]
    ) -> bool:
        """Move jobs to the dead-letter topic. Where it refuses them, they rest for a time.

        False if none of them is out of the way: another claim may find the same ones.
        """
        config, name = topic.config, str(topic.name)
        records = [dead_letter(name, job, labels[job.key], config.max_deliveries) for job in jobs]
        letter = Append(
            str(config.dead_letter),
            records,
            sum([record.size for record in records]),
            DEFAULT_CONFIG,
            keys=self._mint.take(len(records), self._clock.now_ms()),
        )
        leases = {job.key: job.deliveries for job in jobs}
        try:
            return await self._inbox.ask(LayAside(name, leases, letter)) > 0
        except TopicNotFound:
            raise
        except ZqError as error:
            self._refusals.note(topic, error)
            rest = max(rest_ms(job, config) for job in jobs)
            refused = await self._work.release(list(leases), leases, rest, EVERYWHERE)
            return bool(leases.keys() - refused.missing - refused.stale)

    async def _held(
        self, name: str, wanted: Selection, reach: Reach
    ) -> tuple[TopicState, dict[int, HeldRecord]]:
        """The queue, and those of the named records that the node holds, by number."""
        check_selection(wanted)
        topic = await self.get(name, reach)
        if not wanted.seqs:
            return topic, {}
        return topic, chosen(wanted, await self._reads.held(topic, wanted.node, wanted.seqs))

    async def _decided(
        self,
        topic: TopicState,
        wanted: Selection,
        held: dict[int, HeldRecord],
        keys: set[int],
        reach: Reach,
    ) -> Decided:
        left = {seq for seq, each in held.items() if each.key in keys}
        done: list[int] = []
        skipped: list[int] = []
        for seq in wanted.seqs:
            (done if seq in left else skipped).append(seq)
            left.discard(seq)
        return Decided(done, skipped, await self.get(str(topic.name), reach))


def _number(record: ClaimedRecord) -> int:
    return record.labels.seq


class Cohorts:
    """The claims that wait for others, by topic. `count_ready` tells how many jobs there are."""

    def __init__(self, clock: Clock, count_ready: Callable[[str], Awaitable[int]]) -> None:
        self._clock = clock
        self._count_ready = count_ready
        self._waiting: dict[str, list[tuple[int, asyncio.Future[int]]]] = {}
        self._dealing: set[asyncio.Task[None]] = set()

    def waiting(self, topic: str) -> int:
        """How many claims of a topic wait for others."""
        return len(self._waiting.get(topic, ()))

    async def share(self, topic: str, most: int, window_ms: int) -> int:
        """How many jobs a claim of up to `most` may take, once its cohort is complete."""
        claim: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        if topic not in self._waiting:
            self._waiting[topic] = []
            self._clock.call_later(window_ms / 1000, partial(self._begin, topic))
        self._waiting[topic].append((most, claim))
        return await claim

    def _begin(self, topic: str) -> None:
        task = asyncio.create_task(self._deal(topic))
        self._dealing.add(task)
        task.add_done_callback(self._dealing.discard)

    async def _deal(self, topic: str) -> None:
        # Those whose clients are gone meanwhile get no share.
        cohort = [each for each in self._waiting.pop(topic) if not each[1].done()]
        wanted = [most for most, _ in cohort]
        try:
            shares = dealt(await self._count_ready(topic), wanted)
        except (ZqError, StoreError):
            shares = wanted
        for share, (_, claim) in zip(shares, cohort, strict=True):
            if not claim.done():
                claim.set_result(share)


LOG_EVERY_S = 60.0


class DeadLetterRefusals:
    """Logs that records stay in a queue whose dead-letter topic refuses them, once a minute."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._logged: dict[str, float] = {}
        """When that was logged of a queue, if less than a minute ago."""

    def note(self, topic: TopicState, error: ZqError) -> None:
        """Note a refusal of records of this queue."""
        now, name = self._clock.monotonic(), str(topic.name)
        if now - self._logged.get(name, -LOG_EVERY_S) < LOG_EVERY_S:
            return
        recent = {each: at for each, at in self._logged.items() if now - at < LOG_EVERY_S}
        self._logged = {**recent, name: now}
        cause = {"dead_letter": topic.config.dead_letter, "error": error.message}
        log.warning("dead letters refused", extra={"fields": {"topic": name, **cause}})
