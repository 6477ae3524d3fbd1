"""The verbs of workers: success and failure."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import NamedTuple

from zq.model.commands import Command, Fail, Settled, Succeed
from zq.model.errors import NotInFlight, TooLarge
from zq.model.ids import IdCodec
from zq.model.job import Job
from zq.model.outcome import Completion
from zq.model.reach import Reach
from zq.model.settling import Failure

Submit = Callable[[Command], Awaitable[object]]


class Refused(NamedTuple):
    """Ids that an acknowledgement left alone: not in flight, or of a delivery that has ended."""

    not_found: list[str]
    stale: list[str]


class Settlements:
    """A part of the engine. `max_result` bounds the bytes of a result."""

    def __init__(self, ids: IdCodec, submit: Submit, max_result: int) -> None:
        self._ids = ids
        self._submit = submit
        self._max_result = max_result

    async def succeed(
        self, ids: Sequence[str], reach: Reach, said: Mapping[str, Completion] | None = None
    ) -> Refused:
        """Acknowledge jobs; the ids that were left alone, in the order given.

        `said` has what goes with some of the ids. Raises `TooLarge` where a result is over the
        bound, and then acknowledges nothing.
        """
        keys = list(map(self._ids.key, ids))
        known = [key for key in keys if key is not None]
        by_key = self._by_key(said) if said else None
        reply: object = Settled(frozenset())
        if known:
            size = sum(told.result_size for told in by_key.values()) if by_key else 0
            reply = await self._submit(Succeed(keys=known, reach=reach, said=by_key, size=size))
        assert isinstance(reply, Settled)
        if not reply.missing and not reply.stale and len(known) == len(ids):
            return Refused([], [])
        pairs = list(zip(ids, keys, strict=True))
        return Refused(
            [id for id, key in pairs if key is None or key in reply.missing],
            [id for id, key in pairs if key in reply.stale],
        )

    async def fail(self, id: str, failure: Failure, reach: Reach) -> Job:
        """Report a failure; the job as it is now. Raises `NotInFlight` or `StaleLease`."""
        key = self._ids.key(id)
        if key is None:
            raise NotInFlight
        job = await self._submit(Fail(key=key, failure=failure, reach=reach))
        assert isinstance(job, Job)
        return job

    def _by_key(self, said: Mapping[str, Completion]) -> dict[int, Completion]:
        found: dict[int, Completion] = {}
        for id, told in said.items():
            if told.result_size > self._max_result:
                raise TooLarge(
                    f"the result of job {id[:64]} has {told.result_size} bytes and may have"
                    f" {self._max_result}: keep it elsewhere and send where, or raise --max-result"
                )
            key = self._ids.key(id)
            if key is not None:
                found[key] = told
        return found
