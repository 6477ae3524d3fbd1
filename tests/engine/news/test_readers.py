"""Readers of events: how many are woken, how often a text is made, and what a slow one is told."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import ExitStack, asynccontextmanager

import pytest
from manual_clock import ManualClock

from zq.engine.subscribers import events, window
from zq.engine.subscribers.events import EventHub, Form, Reader
from zq.engine.subscribers.waking import AT_ONCE
from zq.engine.subscribers.window import NumberedEvent, Wanted
from zq.model.events import EventRecord, EventType


class Texts:
    """A form that remembers which events it has made a text of."""

    def __init__(self) -> None:
        self.made: list[list[int]] = []

    def __call__(self, told: Sequence[NumberedEvent]) -> bytes:
        self.made.append([each.number for each in told])
        return b"".join(b"%d " % each.number for each in told)


class Listener:
    """A reader with a handler that reads whenever it is woken."""

    def __init__(self, hub: EventHub, reader: Reader) -> None:
        self.reader = reader
        self.heard = b""
        self.turns = 0
        self._hub = hub

    async def run(self) -> None:
        while True:
            await self.reader.wait()
            if self._hub.gap(self.reader) is None:
                text = self._hub.text(self.reader)
                self.heard += text
                self.turns += bool(text)


@asynccontextmanager
async def listening(
    hub: EventHub, count: int, form: Form, *choices: Wanted
) -> AsyncIterator[list[Listener]]:
    """Listeners that have seen everything so far. Their choices take turns."""
    with ExitStack() as readers:
        wanted = choices or (Wanted(),)
        listeners = [
            Listener(hub, readers.enter_context(hub.reader(wanted[n % len(wanted)], None, form)))
            for n in range(count)
        ]
        tasks = [asyncio.create_task(each.run()) for each in listeners]
        await turns(3)
        try:
            yield listeners
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


async def turns(count: int) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


def event(queue: str = "q", type: EventType = EventType.ENQUEUED, key: int = 1) -> EventRecord:
    return EventRecord(type, key, queue, None, 0)


@pytest.fixture
def hub() -> EventHub:
    return EventHub(ManualClock())


async def test_few_readers_are_woken_in_one_turn_whatever_their_number(hub: EventHub) -> None:
    async with listening(hub, 20 * AT_ONCE, Texts()) as listeners:
        hub.add(0, [event()])
        told = 0
        while told < len(listeners):
            await asyncio.sleep(0)
            before, told = told, sum(each.turns for each in listeners)
            assert told - before <= AT_ONCE
        assert {each.heard for each in listeners} == {b"1 "}


async def test_the_same_text_is_made_once_for_all(hub: EventHub) -> None:
    texts = Texts()
    async with listening(hub, 5 * AT_ONCE, texts) as listeners:
        hub.add(0, [event()])
        # More happens while some have been told of it and others wait for their turn.
        await turns(2)
        hub.add(0, [event(), event()])
        await turns(20)
        assert {each.heard for each in listeners} == {b"1 2 3 "}
        assert [number for made in texts.made for number in made] == [1, 2, 3]


async def test_a_reader_that_does_not_come_back_costs_nothing_more(
    hub: EventHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    nudged: list[Reader] = []
    monkeypatch.setattr(Reader, "nudge", nudged.append)
    with hub.reader(Wanted(), None) as reader:
        for _ in range(1000):
            hub.add(0, [event()])
        await turns(100)
        assert nudged == [reader]


@pytest.mark.parametrize(
    "wanted",
    [
        Wanted(queues=frozenset({"other"})),
        Wanted(types=frozenset({EventType.FAILED, EventType.STALLED})),
        Wanted(queues=frozenset({"q"}), types=frozenset({EventType.FAILED})),
        Wanted(keys=frozenset({2, 3})),
        Wanted(keys=frozenset()),
    ],
)
async def test_an_event_wakes_nobody_who_does_not_want_it(hub: EventHub, wanted: Wanted) -> None:
    with hub.reader(wanted, None, Texts()) as reader:
        await reader.wait()
        hub.take(reader)
        waiting = asyncio.create_task(reader.wait())
        hub.add(0, [event()] * 3)
        await turns(3)
        assert not waiting.done()
        # It has passed over them: it need not be told of them when it comes back.
        assert hub.last_id(reader) == hub.id(3)
        waiting.cancel()


@pytest.mark.parametrize(
    "wanted",
    [
        Wanted(),
        Wanted(queues=frozenset({"q", "a"})),
        Wanted(types=frozenset({EventType.ENQUEUED})),
        Wanted(queues=frozenset({"q"}), types=frozenset({EventType.ENQUEUED, EventType.FAILED})),
        Wanted(queues=frozenset(map(str, range(100))) | {"q"}),
        Wanted(queues=frozenset({"q"}), keys=frozenset({1})),
        Wanted(keys=frozenset(range(100))),
    ],
)
async def test_an_event_wakes_those_who_want_it(hub: EventHub, wanted: Wanted) -> None:
    async with listening(hub, 2, Texts(), wanted) as listeners:
        hub.add(0, [event("a", EventType.STARTED, 200), event()])
        await turns(5)
        assert [each.heard.endswith(b"2 ") for each in listeners] == [True, True]


async def test_a_slow_reader_is_told_of_a_gap_and_goes_on(
    hub: EventHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(window, "MOST_EVENTS", 10)
    with hub.reader(Wanted(), None) as reader:
        for _ in range(25):
            hub.add(0, [event()])
        gap = hub.gap(reader)
        assert gap is not None
        assert (gap.missed, gap.event_id) == (15, hub.id(15))
        assert hub.gap(reader) is None
        assert [told.number for told in hub.take(reader)] == [*range(16, 26)]


async def test_much_news_is_told_in_parts_with_others_in_between(hub: EventHub) -> None:
    many = 4 * window.LOOKED_AT
    wanted = Wanted(), Wanted(types=frozenset({EventType.ENQUEUED}))
    async with listening(hub, 2, Texts(), *wanted) as (one, other):
        hub.add(0, [event()] * many)
        await turns(20)
        assert one.heard.count(b" ") == other.heard.count(b" ") == many
        assert min(one.turns, other.turns) >= 4


async def test_texts_are_kept_within_a_bound(
    hub: EventHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events, "SHARED_BYTES", 3 * events.TEXT_BYTES)
    texts = Texts()
    async with listening(hub, 2, texts) as listeners:
        for number in range(1, 100):
            hub.add(0, [event()])
            await turns(3)
            assert len(texts.made) == number
        with hub.reader(Wanted(), hub.id(0), texts) as late:
            again = hub.text(late)
        assert listeners[0].heard.startswith(again)
        # Nothing that old was kept, so it had to be made again.
        assert len(texts.made) == 100
