"""Chains and chords: jobs that begin with the results of others.

What comes next travels in the `meta` of a job. Whoever executes the job enqueues it, before the job
is acknowledged: see `zq.client.worker.continuing`.

Each later step has a unique key that the starting program knows. A worker enqueues it before the
job of the step before is done, so whoever has seen that job's end finds the next one by its key.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from secrets import token_urlsafe
from typing import TYPE_CHECKING, Any, NoReturn
from uuid import uuid4

import msgspec

from zq.client import replaced
from zq.client.amounts import Seconds, milliseconds
from zq.client.backend import Backend, run
from zq.client.errors import InvalidOption, JobNotFound
from zq.client.formats import JSON
from zq.client.job import Job, TimeLeft
from zq.client.running import run_waiting
from zq.client.task import Task
from zq.client.values import Submission
from zq.model.job import MAX_META


class JobFlow:
    """A chain or a chord. `jobs` are the job of the first step, or those of all members."""

    def __init__(
        self, backend: Backend, jobs: list[Job[Any]], keys: Sequence[str], last: Task[Any, Any]
    ) -> None:
        """`keys` are the unique keys of the later steps. A last task with its own key has none."""
        self.jobs = jobs
        self._backend = backend
        self._keys = keys
        self._last = last

    def __repr__(self) -> str:
        return f"<JobFlow of {len(self.jobs)} jobs up to {self._last.name}>"

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> NoReturn:
            said = replaced.remedy(replaced.JOB_METHODS, name)
            raise AttributeError(f"a flow has no {name!r}{said}", name=name, obj=self)

    async def result(self, timeout: Seconds | None = 30.0) -> Any:
        """Wait for the result of the last step. With a `timeout` of None, wait for ever.

        Raises the errors of `Job.result` for the first job that has not succeeded, and
        `JobNotFound` if nothing of the last step is kept.
        """
        return await self._result(self._backend, TimeLeft(timeout))

    def result_sync(self, timeout: Seconds | None = 30.0) -> Any:
        """Like `result`, for code without an event loop: it blocks."""
        waiting = self._result(self._backend.blocking, TimeLeft(timeout))
        return run_waiting(waiting, "await flow.result(…)")

    async def _result(self, backend: Backend, left: TimeLeft) -> Any:
        own = self._last.effective
        if self._keys and not (own.get("key") is None and own.get("batch") is None):
            raise InvalidOption(
                f"the last step, {self._last.name}, has a key or a batch, so its job may be that of"
                " others: let the step itself use the result"
            )
        value: Any = None
        for job in self.jobs:
            value = await _end(job, backend, left)
        for key in self._keys:
            value = await self._step(key, backend, left)
        if value is _GONE:
            raise JobNotFound(
                f"nothing of the last step, {self._last.name}, is kept: its result_ttl is over, or"
                " a job of the flow was deleted, or a worker in another language has executed it"
            )
        return value

    async def _step(self, key: str, backend: Backend, left: TimeLeft) -> Any:
        try:
            stored = await backend.by_key(key)
        except JobNotFound:
            return _GONE
        convert = self._last.signature.result if key == self._keys[-1] else None
        return await _end(Job(stored, self._backend, convert), backend, left)


_GONE = object()
"""Stands for the result of a job of which nothing is kept. The next step may still be there."""


async def _end(job: Job[Any], backend: Backend, left: TimeLeft) -> Any:
    try:
        return await job.outcome(backend, left)
    except JobNotFound:
        return _GONE


THEN = "zq_then"
"""The field of `meta` with the job that comes next."""

CHORD = "zq_chord"
"""The field of `meta` with the place of a job in its chord."""

DELAY = "zq_delay"
"""The field of `meta` with the milliseconds from the end of the step before to a job's time."""


class ChordPlace(msgspec.Struct, frozen=True):
    """The place of a job in its chord."""

    chord: str
    index: int
    size: int


@dataclass(frozen=True)
class Step:
    """A call of a task in a chain or a chord. Results come before its own arguments."""

    task: Task[Any, Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]

    def first(self) -> Submission:
        """The job, for a step that begins with its own arguments."""
        return self.task.job(self.task.args(*self.args, **self.kwargs).payload)

    def later(self, giver: str, gives: frozenset[str]) -> Submission:
        """The job, for a step whose first argument is what `giver` gives.

        Raises the errors of `Signature.following`.
        """
        signature, delay = self.task.signature, self.task.effective.get("delay")
        call = signature.following(self.args, self.kwargs, giver, gives)
        # In a fair key, None stands for the result that comes first.
        job = self.task.job({**call, "args": (None, *call["args"])})
        job = msgspec.structs.replace(job, payload=call)
        if not delay:
            return job
        meta = {**(job.meta or {}), DELAY: milliseconds("delay", delay)}
        return msgspec.structs.replace(job, ready_at=None, meta=meta)


def step(task: Task[Any, Any], /, *args: Any, **kwargs: Any) -> Step:
    """A call of a task, for `chain` and `chord`. Nothing is sent yet. Raises `InvalidOption`."""
    if not isinstance(task, Task):
        raise InvalidOption(f"step: {task!r} is not a task: give a function with @app.task")
    return Step(task, args, kwargs)


async def chain(*steps: Step) -> JobFlow:
    """Enqueue the first step. Each other one gets the result of the one before as first argument.

    ``await zq.chain(zq.step(fetch, url), zq.step(resize, 200))`` calls ``resize(fetched, 200)``.
    ``await flow.result()`` waits for the last step. Raises `InvalidOption`.
    """
    return await _chain(_backend(steps), steps)


def chain_sync(*steps: Step) -> JobFlow:
    """Do as `chain` does, in programs without an event loop."""
    return run(_chain(_backend(steps).blocking, steps))


async def chord(steps: Sequence[Step], then: Step) -> JobFlow:
    """Enqueue all steps. When all of them have succeeded, `then` gets the list of their results.

    ``await zq.chord([zq.step(count, day) for day in week], zq.step(add_up))`` adds up once.
    ``await flow.result()`` waits for that, and `flow.jobs` are the jobs of the steps, in their
    order. Without steps, `then` gets an empty list at once. Raises `InvalidOption`.
    """
    return await _chord(_backend([*steps, then]), steps, then)


def chord_sync(steps: Sequence[Step], then: Step) -> JobFlow:
    """Do as `chord` does, in programs without an event loop."""
    return run(_chord(_backend([*steps, then]).blocking, steps, then))


def _backend(steps: Sequence[Step]) -> Backend:
    if not steps:
        raise InvalidOption("give at least one step")
    for each in steps:
        if not isinstance(each, Step):
            raise InvalidOption(f"{each!r} is not a step: write zq.step(task, …)")
    return steps[0].task.core.backend


async def _chain(backend: Backend, steps: Sequence[Step]) -> JobFlow:
    first, *others = steps
    name = token_urlsafe(12)
    keys = [f"zq-flow:{name}:{place}" for place in range(len(others))]
    then: Submission | None = None
    for before, each, key in reversed([*zip(steps, others, keys, strict=False)]):
        later = each.later(before.task.name, before.task.signature.gives)
        then = _keyed(_followed(later, then), key)
    job = _followed(first.first(), then)
    _check_size(job)
    stored = await _enqueue(backend, [job], steps[:1])
    return JobFlow(first.task.core.backend, stored, keys, steps[-1].task)


async def _chord(backend: Backend, steps: Sequence[Step], then: Step) -> JobFlow:
    key = f"zq-flow:{token_urlsafe(12)}"
    if not steps:
        only = Step(then.task, ([], *then.args), then.kwargs)
        await backend.enqueue([_keyed(only.first(), key)])
        return JobFlow(then.task.core.backend, [], [key], then.task)
    chord, last = uuid4().hex, _keyed(then.later("a chord", frozenset({"list"})), key)
    jobs = [
        _followed(each.first(), last, ChordPlace(chord, index, len(steps)))
        for index, each in enumerate(steps)
    ]
    _check_size(jobs[0])
    stored = await _enqueue(backend, jobs, steps)
    return JobFlow(steps[0].task.core.backend, stored, [key], then.task)


async def _enqueue(
    backend: Backend, jobs: Sequence[Submission], steps: Sequence[Step]
) -> list[Job[Any]]:
    return [
        Job(stored, each.task.core.backend, each.task.signature.result)
        for stored, each in zip(await backend.enqueue(jobs), steps, strict=True)
    ]


def _keyed(job: Submission, key: str) -> Submission:
    """A later step with the unique key by which `JobFlow` finds it, unless it has its own."""
    if job.dedupe is not None:  # the worker that enqueues it would replace it by that of the flow
        raise InvalidOption(
            f"{job.type}: a later step has a dedupe id of its flow and can have no other: give it a"
            " key, or dedupe=None"
        )
    if job.unique_key is not None or job.batch is not None:
        return job
    return msgspec.structs.replace(job, unique_key=key, unique_while="exists")


def _followed(
    job: Submission, then: Submission | None, place: ChordPlace | None = None
) -> Submission:
    """The job with what comes next."""
    if then is None:
        return job
    if not (job.unique_key is None and job.batch is None and job.dedupe is None):
        raise InvalidOption(
            f"{job.type}: a step that others follow can have neither a key, a batch nor a dedupe"
            " id, because its job may be that of others, which do not go on with this flow"
        )
    meta = {**(job.meta or {}), THEN: then}
    if place is not None:
        meta[CHORD] = place
    return msgspec.structs.replace(job, meta=meta)


def _check_size(job: Submission) -> None:
    """Raise `InvalidOption` if what comes next does not fit into the job's `meta`."""
    size = len(JSON.encode(job.meta))
    if size > MAX_META:
        raise InvalidOption(
            f"what follows takes {size:,} of at most {MAX_META:,} bytes in the job's meta: give its"
            " arguments in a shorter way, or let the last of fewer steps begin another chain"
        )
