"""Lanes with `backlog: behind`: new jobs first, older ones by a lane with numbers of its own."""

from pathlib import Path
from typing import Any

from store.rig import Ticker, new_job

from zq.features.forward.commands import Arrive, DropLane, NumberLane, PauseLane, PutLane, ReadLane
from zq.features.forward.model import BEHIND_MS, LaneBatch, LaneRule
from zq.model.job import JobSettings

from .edge import Edge, until

BACKLOG = "up.backlog"


def lay(ticker: Ticker, **rule: Any) -> None:
    given = {"url": "http://127.0.0.1:1", "backlog": "behind"} | rule
    (reply,) = ticker.run(PutLane("up", LaneRule(("out*",), **given), "e.1")).replies
    assert reply.name == "up", reply  # type: ignore[attr-defined]


def numbered(ticker: Ticker, lane: str, most: int = 100) -> tuple[int, list[int]]:
    (batch,) = ticker.run(NumberLane(lane, most)).replies
    assert isinstance(batch, LaneBatch), batch
    return batch.first, list(batch.keys)


def later(ticker: Ticker) -> None:
    ticker.now += BEHIND_MS + 1


def test_each_job_leaves_by_the_lane_of_its_age(ticker: Ticker) -> None:
    old = ticker.store(3, queue="out", priority=9)
    later(ticker)
    new = ticker.store(2, queue="out", priority=9)
    urgent = ticker.store(1, queue="out/mail", priority=1)
    lay(ticker)

    assert numbered(ticker, BACKLOG, 2) == (1, old[:2])
    assert numbered(ticker, "up") == (1, urgent + new)
    assert numbered(ticker, BACKLOG) == (3, old[2:])
    assert numbered(ticker, "up")[1] == numbered(ticker, BACKLOG)[1] == []


def test_what_nobody_has_sent_changes_over(ticker: Ticker) -> None:
    keys = ticker.store(3, queue="out")
    lay(ticker)
    assert numbered(ticker, BACKLOG) == (1, [])
    assert numbered(ticker, "up", 1) == (1, keys[:1])

    later(ticker)

    assert numbered(ticker, "up") == (2, [])
    assert numbered(ticker, BACKLOG) == (1, keys[1:])


def test_a_clock_that_is_set_back_makes_no_new_job_old(ticker: Ticker) -> None:
    ticker.store(1, queue="out")
    lay(ticker)
    numbered(ticker, "up")
    ticker.now -= 10 * 365 * 86_400_000
    (key,) = ticker.store(1, queue="out")

    assert numbered(ticker, BACKLOG) == (1, [])
    assert numbered(ticker, "up") == (2, [key])


def test_a_group_keeps_its_order_over_both_lanes(ticker: Ticker) -> None:
    def stored(group: str) -> list[int]:
        command = ticker.enqueue([new_job(queue="out", group=group)] * 2)
        ticker.run(command)
        return list(command.keys)

    old = stored("a")
    later(ticker)
    new, other = stored("a"), stored("b")
    lay(ticker)

    assert numbered(ticker, "up") == (1, other)
    assert numbered(ticker, BACKLOG, 3) == (1, [*old, new[0]])
    assert numbered(ticker, "up") == (3, [])
    ticker.run(Arrive(BACKLOG, "e.1", 2))
    assert numbered(ticker, "up") == (3, [])
    ticker.run(Arrive(BACKLOG, "e.1", 3))
    assert numbered(ticker, "up") == (3, new[1:])


def test_jobs_in_lines_leave_with_what_is_new(ticker: Ticker) -> None:
    keys = ticker.store(2, queue="out", options=JobSettings(fair_key="k"))  # type: ignore[call-arg]
    later(ticker)
    keys += ticker.store(1, queue="out")
    lay(ticker)

    assert numbered(ticker, BACKLOG) == (1, [])
    assert sorted(numbered(ticker, "up")[1]) == keys


def test_a_rule_that_has_no_backlog_any_more_keeps_what_is_under_way(ticker: Ticker) -> None:
    keys = ticker.store(3, queue="out")
    later(ticker)
    lay(ticker)
    numbered(ticker, BACKLOG, 2)

    lay(ticker, backlog="in_order")

    assert numbered(ticker, BACKLOG) == (3, [])
    assert numbered(ticker, "up") == (1, keys[2:])
    assert ticker.run(Arrive(BACKLOG, "e.1", 2)).replies == [2]
    lay(ticker, backlog="in_order")
    assert "is not known" in str(ticker.run(ReadLane(BACKLOG)).replies[0])


def test_both_lanes_are_paused_and_dropped_together(ticker: Ticker) -> None:
    keys = ticker.store(2, queue="out")
    later(ticker)
    lay(ticker)
    numbered(ticker, BACKLOG, 1)

    ticker.run(PauseLane("up", True))
    (found,) = ticker.run(ReadLane(BACKLOG)).replies
    assert found.lane.paused  # type: ignore[attr-defined]
    ticker.run(DropLane("up"))

    assert ticker.take(9) == keys


async def test_new_jobs_pass_the_backlog_and_each_arrives_once(tmp_path: Path) -> None:
    async with Edge(tmp_path).running() as edge:
        await edge.push(*range(300))
        edge.device.clock.advance(BEHIND_MS + 1)
        await edge.lay(batch=10, backlog="behind", backlog_rate=400)
        await edge.push(*range(1000, 1050))
        await until(lambda: edge.progress.arrived == 50)
        for site in (edge.hub, edge.device, edge.hub):
            await edge.crash(site)

        arrived = await edge.eventually(350)

        assert sorted(arrived) == [*range(300), *range(1000, 1050)]
        assert [n for n in arrived if n < 1000] == list(range(300))
        assert [n for n in arrived if n >= 1000] == list(range(1000, 1050))


async def test_the_lanes_of_a_rule_are_shown_apart(tmp_path: Path) -> None:
    async with Edge(tmp_path).running() as edge:
        edge.cable.cut()
        await edge.push(*range(3))
        edge.device.clock.advance(BEHIND_MS + 5000)
        await edge.lay(backlog="behind")
        await edge.lanes.pause("up", paused=True)
        await edge.push(4)
        edge.device.clock.advance(1000)

        shown = {each["name"]: each for each in (await edge.near.get("/forward")).doc["lanes"]}

        new, old = shown["up"], shown[BACKLOG]
        assert (new["waiting"], new["bytes"], new["lag_ms"]) == (1, 1, 1000)
        assert (old["waiting"], old["bytes"], old["lag_ms"]) == (3, 3, BEHIND_MS + 6000)
        refused = await edge.near.delete(f"/forward/{BACKLOG}")
        assert refused.status == 400 and "change the rule of that lane" in refused.error
