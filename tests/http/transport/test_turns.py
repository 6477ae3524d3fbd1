"""Connections work off what has arrived in turns of the loop. All is counted by its cost."""

import asyncio
import resource
from collections import Counter

import pytest
from aiohttp import web
from http2.serving import serve

from zq.http.transport.turns import (
    AT_ONCE,
    BESIDE,
    CROWD,
    GONE,
    PER_TURN,
    PIECE,
    PIPELINE,
    REQUEST_COST,
    TURNS_AWAKE,
    UNCOUNTED,
    LoopTurns,
    Share,
)

STEP = 10


class LoopTurnCount:
    """Counts the turns of the loop from its making on."""

    def __init__(self) -> None:
        self.now = 0
        self._loop = asyncio.get_running_loop()
        self._next()

    def _next(self) -> None:
        self.now += 1
        self._handle = self._loop.call_soon(self._next)

    def end(self) -> None:
        self._handle.cancel()


class Pile:
    """A connection with so many steps to work off. It notes the cost in each turn."""

    def __init__(self, turns: LoopTurns, count: LoopTurnCount, steps: int) -> None:
        self.left = steps
        self.costs: Counter[int] = Counter()
        self.held = self.aborted = False
        self.share = Share(turns, self)
        self._count = count

    def go_on(self, most: int) -> int:
        cost = 0
        while cost < most and self.left:
            self.left -= 1
            cost += STEP
        self.costs[self._count.now] += cost
        return cost

    def has_more(self) -> bool:
        return self.left > 0

    def hold(self) -> None:
        self.held = True

    def release(self) -> None:
        self.held = False

    def abort(self) -> None:
        self.aborted = True


async def until_done(*piles: Pile) -> None:
    for _ in range(10_000):
        if not any(pile.left or pile.held for pile in piles):
            return
        await asyncio.sleep(0)
    raise AssertionError("something waits for ever")


class Waiting:
    """A connection with one small request. It notes the turn in which that begins."""

    def __init__(self, turns: LoopTurns, count: LoopTurnCount) -> None:
        self.began = 0
        self._turns, self._count = turns, count

    def serve_next(self) -> None:
        if self.began:
            return
        if self._turns.uncounted:
            self._turns.uncounted -= 1
        elif not self._turns.may_begin(self):
            return
        self.began = self._count.now


async def test_of_a_crowd_only_some_begin_in_a_turn_and_newcomers_need_not_wait() -> None:
    turns, count = LoopTurns(), LoopTurnCount()
    crowd = [Waiting(turns, count) for _ in range(5 * CROWD)]
    for each in crowd:
        each.serve_next()
    first = count.now
    newcomers = []
    while not all(each.began for each in crowd):
        await asyncio.sleep(0)
        newcomers.append((Waiting(turns, count), count.now))
        newcomers[-1][0].serve_next()
    count.end()
    begun = Counter(each.began for each in crowd)
    assert begun.pop(first) == UNCOUNTED + CROWD
    assert max(begun.values()) == CROWD // 2
    assert [each.began for each, _ in newcomers] == [came for _, came in newcomers]


async def test_of_a_crowd_that_has_gone_only_some_handlers_end_in_a_turn() -> None:
    turns, count = LoopTurns(), LoopTurnCount()
    ended = Counter[int]()

    class Handler:
        def cancel(self) -> None:
            ended[count.now] += 1

    for _ in range(3 * GONE + 1):
        turns.cancel(Handler())
    for _ in range(10):
        await asyncio.sleep(0)
    count.end()
    assert list(ended.values()) == [GONE, GONE, GONE, 1]


async def test_what_is_little_is_done_at_once_and_nothing_is_held() -> None:
    count = LoopTurnCount()
    pile = Pile(LoopTurns(), count, AT_ONCE // STEP)
    pile.share.work()
    assert (pile.left, pile.held, pile.share.light) == (0, False, True)
    count.end()


async def test_what_is_too_much_goes_on_with_a_small_part_in_each_turn() -> None:
    count = LoopTurnCount()
    pile = Pile(LoopTurns(), count, 2 * AT_ONCE // STEP)
    pile.share.work()
    assert pile.held
    await until_done(pile)
    first, *others = pile.costs.values()
    assert first == AT_ONCE
    assert max(others) <= PER_TURN
    assert len(others) == AT_ONCE // PER_TURN
    count.end()


async def test_the_kernel_gets_the_processor_while_a_pile_is_worked_off() -> None:
    count, rests = LoopTurnCount(), 8
    turns = (rests + 1) * TURNS_AWAKE
    pile = Pile(LoopTurns(), count, (AT_ONCE + turns * PER_TURN) // STEP)
    pile.share.work()
    slept = resource.getrusage(resource.RUSAGE_THREAD).ru_nvcsw
    await until_done(pile)
    assert resource.getrusage(resource.RUSAGE_THREAD).ru_nvcsw >= slept + rests
    count.end()


async def test_many_that_wait_share_each_turn_and_are_done_in_their_order() -> None:
    count, turns = LoopTurnCount(), LoopTurns()
    piles = [Pile(turns, count, 2 * AT_ONCE // STEP) for _ in range(5)]
    for pile in piles:
        pile.share.work()
    begun = count.now
    await until_done(*piles)
    total: Counter[int] = sum((pile.costs for pile in piles), Counter())
    assert max(cost for turn, cost in total.items() if turn > begun) <= PER_TURN
    served = [turn for pile in piles for turn in list(pile.costs)[:3]]
    assert max(served) <= begun + 3 * len(piles)
    count.end()


async def test_a_little_is_done_beside_those_that_wait() -> None:
    count, turns = LoopTurnCount(), LoopTurns()
    heavy = Pile(turns, count, 2 * AT_ONCE // STEP)
    heavy.share.work()
    await asyncio.sleep(0)
    little, more = (Pile(turns, count, steps) for steps in (BESIDE // STEP, AT_ONCE // STEP))
    little.share.work()
    assert not little.left
    more.share.work()
    assert more.held
    await until_done(heavy, more)
    count.end()


async def test_a_connection_that_had_to_wait_waits_again_for_the_next() -> None:
    count = LoopTurnCount()
    pile = Pile(LoopTurns(), count, 2 * AT_ONCE // STEP)
    pile.share.work()
    await until_done(pile)
    pile.left = 5
    pile.share.work()
    assert (pile.left, pile.held) == (5, True)
    await until_done(pile)
    count.end()


async def test_one_that_is_gone_and_one_that_fails_hold_up_nobody(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Failing(Pile):
        def go_on(self, most: int) -> int:
            if self.held:
                raise ValueError("broken")
            return super().go_on(most)

    count, turns = LoopTurnCount(), LoopTurns()
    steps = 2 * AT_ONCE // STEP
    failing, gone, other = (
        Failing(turns, count, steps),
        *(Pile(turns, count, steps) for _ in range(2)),
    )
    heard: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, told: heard.append(told))
    for pile in (failing, gone, other):
        pile.share.work()
    gone.share.end()
    left = gone.left
    await until_done(other)
    assert gone.left == left
    assert failing.aborted
    assert len(heard) == 1
    count.end()


# Over sockets


async def test_thousands_of_requests_in_one_read_are_answered_in_turns() -> None:
    count = LoopTurnCount()
    begun: Counter[int] = Counter()

    async def handler(request: web.BaseRequest) -> web.Response:
        begun[count.now] += 1
        return web.Response(text=str(begun.total()))

    requests = 5000
    async with serve("h2", handler) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=2**24)
        writer.write(b"GET / HTTP/1.1\r\nHost:q\r\n\r\n" * requests)
        await reader.readuntil(f"\r\n\r\n{requests}".encode())
        writer.close()
    assert begun.total() == requests
    assert max(begun.values()) <= PIPELINE // REQUEST_COST + 1
    in_turns = sorted(begun.values())[:-1]
    assert sum(each <= PER_TURN // REQUEST_COST + 1 for each in in_turns) >= 0.9 * len(in_turns)
    count.end()


@pytest.mark.parametrize(
    "flood",
    [b"1\r\nx\r\n", b"1;a=b\r\nx\r\n", b"1;" + b"a" * 5000 + b"\r\nx\r\n"],
    ids=["chunks", "extensions", "long extensions"],
)
async def test_chunks_without_content_end_their_connection(flood: bytes) -> None:
    async def handler(request: web.BaseRequest) -> web.Response:
        await request.read()
        raise AssertionError("the body has an end")

    async with serve("h2", handler) as port:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"POST / HTTP/1.1\r\nHost:q\r\nTransfer-Encoding: chunked\r\n\r\n")
        with pytest.raises(ConnectionError):
            while True:
                writer.write(flood * (PIECE // len(flood) + 1))
                await writer.drain()


async def test_chunks_of_five_bytes_are_a_body() -> None:
    async def handler(request: web.BaseRequest) -> web.Response:
        return web.Response(text=str(len(await request.read())))

    chunks = 200_000
    async with serve("h2", handler) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"POST / HTTP/1.1\r\nHost:q\r\nTransfer-Encoding: chunked\r\n\r\n")
        writer.write(b"5\r\nabcde\r\n" * chunks + b"0\r\n\r\n")
        await reader.readuntil(f"\r\n\r\n{5 * chunks}".encode())
        writer.close()


async def test_blank_lines_without_a_request_are_refused() -> None:
    async def handler(request: web.BaseRequest) -> web.Response:
        raise AssertionError("there is no request")

    async with serve("h2", handler) as port:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        with pytest.raises(ConnectionError):
            while True:
                writer.write(b"\r\n" * PIECE)
                await writer.drain()
