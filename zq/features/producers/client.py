"""Producers for programs: who numbers jobs, and the verbs of a server about producers."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from zq.client.asking import Ask
from zq.client.errors import BackendError
from zq.client.values import StoredJob, Submission
from zq.features.producers import verbs
from zq.features.producers.model import MAX_SEQ, EpochEnd
from zq.features.producers.wire import ProducerBody
from zq.features.producers.wire import ProducerDocument as ProducerDocument


class EnqueuesOn(Protocol):
    """The part of a backend that stores jobs by terms."""

    async def enqueue_on(
        self, terms: Mapping[str, object], jobs: Sequence[Submission]
    ) -> list[StoredJob]:
        """Store all jobs or none."""


class NumberedJobs:
    """Stores jobs as one producer, in one epoch. Each job has a number, from 1 on, without gaps.

    Whoever sends the same numbers again stores nothing twice, however late that is. `after` is
    where the epoch before has ended, if the name was in another one.
    """

    def __init__(
        self, backend: EnqueuesOn, name: str, epoch: str, after: EpochEnd | None = None
    ) -> None:
        self._backend = backend
        self._name = name
        self._epoch = epoch
        self._after = None if after is None else f"{after.epoch}:{after.last}"

    async def store(self, first: int, jobs: Sequence[Submission]) -> list[StoredJob]:
        """Store jobs whose first one has the number `first`. `duplicate` marks repeated ones.

        A repeated job has an empty id if the server knows it no more. Raises a `BackendError` with
        the code `sequence_gap` or `producer_fenced`; its `details` say what is expected.
        """
        body = ProducerBody(self._name, self._epoch, first, self._after)
        return await self._backend.enqueue_on({"producer": body}, jobs)

    async def expected(self) -> int:
        """The number that the server expects next. Raises a `BackendError` if it is fenced off.

        An empty request of the last number that there is asks for it, so a key that may enqueue
        is enough.
        """
        try:
            await self.store(MAX_SEQ, ())
        except BackendError as error:
            expected = error.details.get("expected")
            if error.code != "sequence_gap" or not isinstance(expected, int):
                raise
            return expected
        return MAX_SEQ

    async def end(self) -> EpochEnd:
        """The epoch in which the server knows the producer, and its last number.

        A name that the server does not know is in this epoch, with 0.
        """
        try:
            return EpochEnd(self._epoch, await self.expected() - 1)
        except BackendError as error:
            epoch, last = error.details.get("epoch"), error.details.get("last")
            if error.code != "producer_fenced" or not isinstance(last, int):
                raise
            return EpochEnd(str(epoch), last)


class ServerProducers:
    """The producers of one server. A missing one raises a `BackendError`."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask

    async def page(
        self, after: str = "", limit: int = 100
    ) -> tuple[list[ProducerDocument], str | None]:
        """Up to `limit` producers by name, and the name after which the next page begins."""
        query = {"limit": str(limit), **({"from": after} if after else {})}
        found = await self._ask(verbs.LIST, query=query)
        return found.producers, found.next

    async def get(self, name: str) -> ProducerDocument:
        """One producer."""
        return await self._ask(verbs.GET, name=name)

    async def forget(self, name: str) -> None:
        """Forget a producer: its next request begins a new epoch, with number 1."""
        await self._ask(verbs.DELETE, name=name)
