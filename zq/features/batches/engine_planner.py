"""Plans for the jobs of batches. Each plan assumes that all plans before it are carried out."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from zq.features.batches.engine_jq import Evaluator, FoldRequest, Host
from zq.features.batches.model_jobs import BatchPlan, HostPlace, StalePlan, batch_of
from zq.model.commands import AnyCommand, Enqueue, EnqueueResult, FoldedPayload
from zq.model.errors import KeyConflict, TooLarge, Unprocessable, ZqError
from zq.model.job import CopyName, name_of
from zq.model.reach import Reach
from zq.store.snapshot import PAGE_BYTES

HIDDEN_HOST = "hosts the same batch"

Hosts = dict[str, Host | None]
"""The open host of each batch; None if there is none."""


class Order(NamedTuple):
    """A command and its requests: a single request, or several with one job each."""

    command: AnyCommand
    requests: Sequence[FoldRequest]

    def learn(self, stale: StalePlan) -> None:
        """Tell the requests which of their jobs the tick has found to be copies by name."""
        if stale.copies is None:
            return
        if len(self.requests) == 1:
            self.requests[0].copies = stale.copies
            return
        for index, request in enumerate(self.requests):
            request.copies = frozenset({0} if index in stale.copies else ())

    def part(self, result: object, index: int) -> object:
        """The part of the result that belongs to one of the requests."""
        if not isinstance(result, EnqueueResult) or len(self.requests) == 1:
            return result
        return EnqueueResult({}, folded={0: result.folded[index]})


class Planner:
    """Plans the requests of one round. `end` answers a request that cannot be done.

    `put_off` takes the requests that are too slow, and the host whose rule is too slow.
    """

    def __init__(
        self,
        evaluator: Evaluator,
        hosts: Hosts,
        end: Callable[[FoldRequest, ZqError], None],
        put_off: Callable[[Sequence[FoldRequest], Host | None], None],
    ) -> None:
        self._evaluator = evaluator
        self._hosts = hosts
        self._end = end
        self._put_off = put_off
        self._brought: set[CopyName] = set()
        """The names of the jobs that were planned so far."""

    async def plan(self, requests: Sequence[FoldRequest]) -> list[Order]:
        """The commands for all requests that can be done, in an order in which they are valid.

        Single jobs that fold into the same host share a command, so the payload of the host is
        written only once.
        """
        alike: dict[tuple[str, Reach], list[FoldRequest]] = {}
        others: list[FoldRequest] = []
        for request in requests:
            alone = len(request.jobs) == 1 and request.wrap is None
            if alone and request.members and not self._copies(request):
                self._note_names(request)
                (key,) = request.members
                alike.setdefault((key, request.reach), []).append(request)
            else:
                others.append(request)
        orders: list[Order] = []
        for (key, reach), group in alike.items():
            orders += await self._plan_singles(key, reach, group)
        for request in others:
            orders += await self._plan_one(request)
        return orders

    async def _plan_singles(
        self, key: str, reach: Reach, requests: Sequence[FoldRequest]
    ) -> list[Order]:
        host = self._hosts[key]
        if host is not None and not reach.covers(host.queue):
            for request in requests:
                self._end(request, KeyConflict(HIDDEN_HOST))
            return []
        place = None if host is None else host.place
        jobs = [(request.keys[0], request.jobs[0]) for request in requests]
        ends = await self._evaluator.fold(host, jobs)
        if len(ends) < len(requests):
            last = next((end for end in reversed(ends) if isinstance(end, Host)), host)
            self._put_off(requests[len(ends) :], last)
        orders: list[Order] = []
        folding: list[FoldRequest] = []

        def fold() -> None:
            nonlocal place
            if folding and host is not None and place is not None:
                orders.append(_merged(folding, key, place, host.payload))
                place = host.place = HostPlace(place.host, place.revision + 1)
                folding.clear()

        for request, end in zip(requests, ends, strict=False):
            if isinstance(end, str):
                self._end(request, Unprocessable(f"batch fold: {end}"))
            elif end is host:
                folding.append(request)
            else:
                fold()
                plan = BatchPlan(folds={}, payloads={}, places={key: place})
                orders.append(Order(_command(request, plan), [request]))
                host, place = end, end.place
        fold()
        self._hosts[key] = host
        return orders

    async def _plan_one(self, request: FoldRequest) -> list[Order]:
        places: dict[str, HostPlace | None] = {}
        folds: dict[int, int] = {}
        changed: dict[int, Host] = {}
        hosts: Hosts = {}
        copies = self._copies(request)
        self._note_names(request)
        for key, members in request.members.items():
            indexes = [index for index in members if index not in copies]
            if not indexes:
                continue
            host = self._hosts[key]
            places[key] = None if host is None else host.place
            if host is not None and not request.reach.covers(host.queue):
                # The tick refuses it by this: a firing is put off then, and not lost.
                hidden = BatchPlan({}, {}, places, copies)
                return [Order(_command(request, hidden), [request])]
            if host is not None:
                # Change a copy, since the request may fail.
                host = host.copy()
            jobs = [(request.keys[index], request.jobs[index]) for index in indexes]
            ends = await self._evaluator.fold(host, jobs)
            for index, end in zip(indexes, ends, strict=False):
                if isinstance(end, str):
                    self._end(request, request.refusal(index, f"batch fold: {end}"))
                    return []
                hosts[key] = end
                if end.key != request.keys[index]:
                    folds[index] = end.key
                    changed[end.key] = end
            if len(ends) < len(indexes):
                self._put_off([request], hosts.get(key, host))
                return []
            if host is not None and host.key in changed:
                host.place = HostPlace(host.key, host.place.revision + 1)
        payloads = {key: folded_payload(host.payload) for key, host in changed.items()}
        if sum([payload.payload_size for payload in payloads.values()]) > PAGE_BYTES + request.size:
            self._end(request, too_large())
            return []
        self._hosts |= hosts
        return [Order(_command(request, BatchPlan(folds, payloads, places, copies)), [request])]

    def _copies(self, request: FoldRequest) -> frozenset[int]:
        """The indexes of the jobs that the tick will recognise as copies by name."""
        brought = set[CopyName]()
        copies = set(request.copies)
        for index, job in enumerate(request.jobs):
            if job.dedupe is None:
                continue
            name = name_of(job)
            if batch_of(job) is not None and (name in brought or name in self._brought):
                copies.add(index)
            brought.add(name)
        return frozenset(copies)

    def _note_names(self, request: FoldRequest) -> None:
        self._brought |= {name_of(job) for job in request.jobs if job.dedupe is not None}


def too_large() -> TooLarge:
    """The error for a request that concerns too many large batches."""
    return TooLarge(
        f"the batches that these jobs belong to hold more than {PAGE_BYTES} bytes together: send"
        " several requests"
    )


def folded_payload(text: str) -> FoldedPayload:
    """The payload that a fold has made."""
    return FoldedPayload(text, len(text) if text.isascii() else len(text.encode()))


def _command(request: FoldRequest, plan: BatchPlan) -> AnyCommand:
    size = request.size + sum([payload.payload_size for payload in plan.payloads.values()])
    command = Enqueue(
        keys=request.keys,
        jobs=request.jobs,
        now=request.now,
        size=size,
        reach=request.reach,
        plan=plan,
    )
    return command if request.wrap is None else request.wrap(command)


def _merged(requests: Sequence[FoldRequest], key: str, place: HostPlace, payload: str) -> Order:
    """The command that folds single jobs into a host, which then has this payload."""
    whole = folded_payload(payload)
    command = Enqueue(
        keys=[request.keys[0] for request in requests],
        jobs=[request.jobs[0] for request in requests],
        now=max(request.now for request in requests),
        size=whole.payload_size,
        reach=requests[0].reach,
        plan=BatchPlan(
            folds=dict.fromkeys(range(len(requests)), place.host),
            payloads={place.host: whole},
            places={key: place},
        ),
    )
    return Order(command, list(requests))
