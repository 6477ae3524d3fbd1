"""The verbs of workers that do not stream, and of all who hold jobs for a limited time."""

from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import NamedTuple

from zq.engine.loop import TickLoop
from zq.engine.players import Claimer, unclaimed
from zq.engine.settlements import Refused
from zq.engine.streams import Streams
from zq.model.clock import Clock
from zq.model.commands import Command, Extend, Extended, Release, Settled
from zq.model.errors import NotInFlight, StaleLease, Unavailable
from zq.model.ids import IdCodec
from zq.model.leasing import Terms
from zq.model.reach import Reach

Submit = Callable[[Command], Awaitable[object]]


class Prolonged(NamedTuple):
    """What extending did: the ids that were left alone, and the deadline of all others."""

    refused: Refused
    until: int


class Leases:
    """A part of the engine. Ids of jobs come with the delivery that is meant, or None."""

    def __init__(
        self, clock: Clock, ids: IdCodec, loop: TickLoop, streams: Streams, submit: Submit
    ) -> None:
        self._clock = clock
        self._ids = ids
        self._loop = loop
        self._streams = streams
        self._submit = submit

    @property
    def claiming(self) -> int:
        """How many claims wait."""
        return self._streams.claiming

    @contextmanager
    def claimer(
        self, queue: str, reach: Reach, most: int, terms: Terms, wait_ms: int
    ) -> Iterator[Claimer]:
        """One who claims up to so many jobs, for as long as the context lasts.

        What it can `take` is decided by the next tick, or with a `wait_ms` as soon as there are
        any, and in `wait_ms` at latest. Where the context ends with an exception, its claimant
        cannot have heard of them, and they go back at once. Raises `QueueOutOfReach`.
        """
        reach.require([queue])
        if self._loop.failure.done():
            raise Unavailable("the server is stopping after a failure of its disk")
        claimer = self._streams.ask(queue, most, terms, hasty=not wait_ms)
        if not self._loop.delivering:
            claimer.give_up()
        timer = self._clock.call_later(wait_ms / 1000, claimer.give_up) if wait_ms else None
        self._loop.wake()
        try:
            yield claimer
        except BaseException:
            self._hand_back(claimer.leases)
            raise
        finally:
            if timer is not None:
                timer.cancel()
            self._streams.dismiss(claimer)

    async def extend(
        self, named: Mapping[str, int | None], lease_ms: int, reach: Reach
    ) -> Prolonged:
        """Let leases last `lease_ms` from now, whoever holds them."""
        keys, leases = self._keys(named)
        command = Extend(keys=keys, leases=leases, lease_ms=lease_ms, reach=reach)
        reply = await self._submit(command)
        assert isinstance(reply, Extended)
        return Prolonged(self._refused(named, reply.refused), reply.until)

    async def release(
        self, named: Mapping[str, int | None], delay_ms: int, reach: Reach
    ) -> Refused:
        """Give jobs back, to be ready again at once or after a delay, at no cost to them."""
        keys, leases = self._keys(named)
        reply = await self._submit(
            Release(keys=keys, leases=leases, delay_ms=delay_ms, reach=reach)
        )
        assert isinstance(reply, Settled)
        return self._refused(named, reply)

    def _hand_back(self, leases: Mapping[int, int]) -> None:
        if leases and not self._loop.failure.done():
            self._loop.inbox.submit(unclaimed(leases))

    def _keys(self, named: Mapping[str, int | None]) -> tuple[list[int], dict[int, int]]:
        keys: list[int] = []
        leases: dict[int, int] = {}
        for id, lease in named.items():
            key = self._ids.key(id)
            if key is not None:
                keys.append(key)
                if lease is not None:
                    leases[key] = lease
        return keys, leases

    def _refused(self, named: Mapping[str, int | None], settled: Settled) -> Refused:
        keys = {id: self._ids.key(id) for id in named}
        return Refused(
            [id for id, key in keys.items() if key is None or key in settled.missing],
            [id for id, key in keys.items() if key in settled.stale],
        )


def raise_refusal(refused: Refused) -> None:
    """What a request about a single job is told. Raises `StaleLease` or `NotInFlight`."""
    if refused.stale:
        raise StaleLease
    if refused.not_found:
        raise NotInFlight
