"""A request that waits to be folded, and the hosts that its jobs may join."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from zq.features.batches.model import BatchRule
from zq.features.batches.model_jobs import batch_of
from zq.features.batches.model_plans import HostPlace
from zq.model.commands import AnyCommand, Enqueue
from zq.model.errors import Unprocessable
from zq.model.job import JobRecord, NewJob
from zq.model.reach import Reach

Wrap = Callable[[Enqueue], AnyCommand]


class FoldRequest:
    """One enqueue, and the future of its answer."""

    def __init__(
        self,
        keys: Sequence[int],
        jobs: Sequence[NewJob],
        now: int,
        size: int,
        reach: Reach,
        wrap: Wrap | None = None,
    ) -> None:
        """`wrap` makes another command around the planned enqueue, if it is given."""
        self.keys, self.jobs, self.now, self.size, self.reach = keys, jobs, now, size, reach
        self.wrap = wrap
        self.reply: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self.copies: frozenset[int] = frozenset()
        """The indexes of jobs that are copies by name. They neither fold nor become hosts."""
        self.is_checked = False
        """True if the rules in the request were tried on its payloads."""
        self.is_held = True
        """True if the inbox counts its jobs as waiting elsewhere."""
        self.lane: object = None
        """The lane that will answer it."""
        self.tries = 0
        self.deadline: float | None = None
        """How long it may wait in the slower lane, by the event loop's clock in seconds."""
        self.ruled = [
            (index, rule) for index, job in enumerate(jobs) if (rule := batch_of(job)) is not None
        ]
        """The jobs with a rule, by index."""
        self.members: dict[str, list[int]] = {}
        """The indexes, by batch, of the jobs that may fold into its host or become it."""
        for index, rule in self.ruled:
            ready_at = jobs[index].ready_at
            if ready_at is None or ready_at <= now:
                self.members.setdefault(rule.key, []).append(index)

    def answer(self, reply: object) -> None:
        """Answer the request, unless nobody waits any more."""
        if not self.reply.done():
            self.reply.set_result(reply)

    def refusal(self, index: int, text: str) -> Unprocessable:
        """The error that refuses the request for one of its jobs."""
        error = Unprocessable(text)
        return error if len(self.jobs) == 1 else error.about(index)


class Host:
    """The host of a batch as it will be after all plans so far."""

    def __init__(self, place: HostPlace, rule: BatchRule, queue: str, payload: str) -> None:
        self.place, self.rule, self.queue, self.payload = place, rule, queue, payload

    @property
    def key(self) -> int:
        return self.place.host

    def copy(self) -> "Host":
        """A copy for changes that may not be carried out."""
        return Host(self.place, self.rule, self.queue, self.payload)


def new_host(key: int, job: NewJob) -> Host:
    """A new job as a host."""
    rule = batch_of(job)
    assert rule is not None
    return Host(HostPlace(key, 0), rule, job.queue, job.payload)


def stored_host(found: tuple[int, JobRecord] | None) -> Host | None:
    """The host as it is stored, with its payload."""
    if found is None:
        return None
    revision, job = found
    rule = batch_of(job)
    assert rule is not None
    assert job.payload is not None
    return Host(HostPlace(job.key, revision), rule, job.queue, job.payload)
