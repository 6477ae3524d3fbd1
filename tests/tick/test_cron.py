"""Firings in the tick: valid ones are done completely, others not at all; and their cost."""

from functools import partial
from typing import Any

from store.rig import NOW, Ticker, new_job
from store.sqlite.backlog import steps

from zq.features.crons.model import (
    NEXT_FIRING,
    CronEntry,
    CronGroup,
    DeleteCrons,
    DueCron,
    Fire,
    Firing,
    WriteCron,
)
from zq.features.crons.store import get_entry
from zq.features.crons.tick import SLICE_ENTRIES
from zq.model.commands import Enqueue, SetQueue
from zq.model.settings import QueueSettings

from .test_tick import statements

CRONS = "zq.features.crons"
NEXT = NOW + 60_000
GROUP = CronGroup("g")


def entry(name: str = "e", **fields: Any) -> CronEntry:
    plain: dict[str, Any] = {
        "name": name,
        "expression": "* * * * *",
        "timezone": None,
        "paused": False,
        "paused_at": None,
        "resumed_at": None,
        "next_at": NOW,
        "last_at": None,
        "timed_at": NOW - 60_000,
        "job": new_job(payload="[1]"),
    }
    return CronEntry(**plain | fields)


def firing(ticker: Ticker, name: str = "e", **fields: Any) -> Firing:
    (key,) = ticker.mint.take(1, ticker.now)
    plain: dict[str, Any] = {
        "group": "g",
        "entry": name,
        "expression": "* * * * *",
        "zone": None,
        "at": NOW,
        "then": NEXT,
        "key": key,
    }
    return Firing(**plain | fields)


def stored(ticker: Ticker, name: str = "e") -> CronEntry:
    _, found = get_entry(ticker.snapshot(CRONS), "g", name)
    assert found is not None
    return found


def test_what_holds_is_enqueued_and_moved_on_together(ticker: Ticker) -> None:
    result = ticker.run(WriteCron(GROUP, [entry()]))
    assert result.found == {NEXT_FIRING: NOW}
    one = firing(ticker)
    result = ticker.run(Fire([one]))
    assert (result.replies, result.found) == ([1], {NEXT_FIRING: NEXT})
    (job,) = ticker.jobs().values()
    assert (job.key, job.ready_at, job.payload) == (one.key, NOW, "[1]")
    assert (stored(ticker).next_at, stored(ticker).last_at) == (NEXT, NOW)
    assert ticker.run(Fire([one])).replies == [0], "it fires once"
    assert len(ticker.jobs()) == 1


def test_a_firing_that_was_computed_from_something_else_does_nothing(ticker: Ticker) -> None:
    ticker.run(WriteCron(GROUP, [entry()]))
    before = stored(ticker)
    for wrong in (
        {"at": NOW - 1},
        {"expression": "* * * * 1"},
        {"zone": "Asia/Tokyo"},
        {"group": "h"},
        {"entry": "f"},
    ):
        assert ticker.run(Fire([firing(ticker, **wrong)])).replies == [0]
    ticker.run(WriteCron(CronGroup("g", timezone="Asia/Tokyo")))
    assert ticker.run(Fire([firing(ticker)])).replies == [0], "the group's zone has changed"
    assert stored(ticker) == before
    assert ticker.jobs() == {}


def test_the_paused_move_on_without_a_job(ticker: Ticker) -> None:
    ticker.run(WriteCron(GROUP, [entry("a", paused=True), entry("b")]))
    ticker.run(WriteCron(CronGroup("g", paused=True)))
    assert ticker.run(Fire([firing(ticker, "a"), firing(ticker, "b")])).replies == [2]
    assert ticker.jobs() == {}
    for name in "ab":
        assert (stored(ticker, name).next_at, stored(ticker, name).last_at) == (NEXT, None)


def test_one_without_room_is_put_off_beside_others_that_fire(ticker: Ticker) -> None:
    ticker.run(SetQueue("full", QueueSettings(max_depth=0)))
    ticker.run(WriteCron(GROUP, [entry("a", job=new_job(queue="full")), entry("b")]))
    result = ticker.run(Fire([firing(ticker, "a"), firing(ticker, "b")]))
    assert (result.replies, result.tally.fired, result.tally.put_off) == ([2], 1, 1)
    assert [job.queue for job in ticker.jobs().values()] == ["q"]
    assert (stored(ticker, "a").next_at, stored(ticker, "a").last_at) == (NOW + 1000, None)
    assert (stored(ticker, "b").next_at, stored(ticker, "b").last_at) == (NEXT, NOW)


def test_a_change_keeps_what_the_store_has_of_those_that_are_kept(ticker: Ticker) -> None:
    ticker.run(WriteCron(GROUP, [entry("a"), entry("b")]))
    ticker.run(Fire([firing(ticker, "a"), firing(ticker, "b")]))
    again = [entry("a", next_at=1), entry("b", next_at=1)]
    ticker.run(WriteCron(GROUP, again, kept=frozenset("a")))
    assert (stored(ticker, "a").next_at, stored(ticker, "b").next_at) == (NEXT, 1)
    assert (stored(ticker, "a").last_at, stored(ticker, "b").last_at) == (NOW, NOW)
    ticker.run(WriteCron(GROUP, [entry("b")], whole=True))
    assert get_entry(ticker.snapshot(CRONS), "g", "a") == (GROUP, None)
    assert ticker.run(DeleteCrons(("g", "h"))).replies == [1]
    assert ticker.snapshot(CRONS).value("count") == 0


def test_keeping_many_entries_costs_as_much_for_each_as_keeping_few(ticker: Ticker) -> None:
    costs = []
    for count in (2 * SLICE_ENTRIES, 16 * SLICE_ENTRIES):
        entries = [entry(f"e{n}") for n in range(count)]
        ticker.run(WriteCron(GROUP, entries))
        again = WriteCron(GROUP, entries, kept=frozenset(each.name for each in entries))
        costs.append(steps(ticker.sqlite, partial(ticker.run, again)) / count)
    few, many = costs
    assert many < few * 1.2


def test_a_template_that_cannot_be_read_is_set_aside(ticker: Ticker) -> None:
    ticker.run(WriteCron(GROUP, [entry("a"), entry("b")]))
    ticker.sqlite.execute("UPDATE cron_entries SET job = '{\"queue\":1}' WHERE name = 'a'")
    result = ticker.run(Fire([firing(ticker, "a"), firing(ticker, "b")]))
    assert result.replies == [1]
    assert [(row.source, row.key) for row in result.misfits] == [("cron_entries", "g/a")]
    assert len(ticker.jobs()) == 1


def test_many_entries_cost_nothing_while_none_is_due(ticker: Ticker) -> None:
    """100,000 of them: no tick of anything else asks for one, and the first due one is a seek."""
    sql = (
        "INSERT INTO cron_entries (cron, name, expression, paused, next_at, timed_at, queue, job)"
        " WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100000)"
        " SELECT 'g', i, '* * * * *', 0, :at + i, 0, 'q', '{}' FROM n"
    )
    ticker.run(WriteCron(GROUP))
    ticker.sqlite.execute(sql, {"at": NEXT})

    def anything() -> None:
        command: Enqueue = ticker.enqueue([new_job()])
        ticker.run(command, promote=True, purge=True)
        ticker.take(1)

    assert [text for text in statements(ticker, anything) if "cron" in text] == []
    look = ticker.snapshot(CRONS)
    assert look.found(DueCron, "due", now=NOW, limit=100) == []
    first = look.found(DueCron, "due", now=NEXT + 3, limit=2)
    assert [due.at for due in first] == [NEXT + 1, NEXT + 2]
    assert look.found(DueCron, "timed_ahead", now=0, cron="", entry="", limit=10) == []
