"""Reads that callers share: nobody gets one that began before the call."""

import asyncio

import pytest

from zq.service.queues import SharedReads


class Source:
    """Something that changes, and is read when the test lets it be."""

    def __init__(self) -> None:
        self.value = 0
        self.reads = 0
        self.may_end = asyncio.Event()
        self.shared = SharedReads(self._read)

    async def _read(self, key: str) -> tuple[str, int]:
        self.reads += 1
        seen = self.value
        await self.may_end.wait()
        if seen < 0:
            raise LookupError(key)
        return key, seen


async def begun(*calls: "asyncio.Task[tuple[str, int]]") -> None:
    for _ in range(3):
        await asyncio.sleep(0)
    assert not any(call.done() for call in calls)


async def test_callers_share_a_read_but_not_one_from_before_their_call() -> None:
    source = Source()
    early = [asyncio.create_task(source.shared.get("a")) for _ in range(3)]
    await begun(*early)
    source.value = 1
    late = [asyncio.create_task(source.shared.get("a")) for _ in range(3)]
    other = asyncio.create_task(source.shared.get("b"))
    await begun(*late, other)
    source.may_end.set()
    assert await asyncio.gather(*early) == [("a", 0)] * 3
    assert await asyncio.gather(*late, other) == [("a", 1)] * 3 + [("b", 1)]
    assert source.reads == 3


async def test_a_read_outlives_a_caller_and_its_failure_harms_no_later_one() -> None:
    source = Source()
    source.value = -1
    gone, stays = [asyncio.create_task(source.shared.get("a")) for _ in range(2)]
    await begun(gone, stays)
    gone.cancel()
    source.may_end.set()
    with pytest.raises(LookupError):
        await stays
    source.value = 2
    assert await source.shared.get("a") == ("a", 2)
    assert source.reads == 2
