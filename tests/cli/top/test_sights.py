"""The tabs Queues and Workers, and what their keys do."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from textual.widgets import Static

from zq.cli.top.page import merged
from zq.cli.top.screens import DeleteQuestion
from zq.cli.top.sights import SightScreen, SightTable

from .watched import Display, Watched, display, watched


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Watched]:
    async with watched(tmp_path / "data") as server:
        yield server


def lines(shown: Display) -> list[str]:
    """The rows of the tab."""
    screen = shown.app.screen
    if not isinstance(screen, SightScreen):
        return []
    table = screen.query_one(SightTable)
    texts = [table.render_line(y).text for y in range(table.size.height)]
    return [text.rstrip() for text in texts if text.strip()]


def said(shown: Display) -> str:
    return str(shown.app.screen.query_one("#keys", Static).content)


async def test_a_queue_is_paused_resumed_and_asked_why_it_waits(server: Watched) -> None:
    await server.fill(7)
    async with display(server) as shown:
        await shown.until(lambda: "Queues" in shown.head)
        await shown.press("4")
        await shown.until(lambda: len(lines(shown)) == 4)
        heading, first, *_ = lines(shown)
        assert heading.split()[:2] == ["QUEUE", "WAITING"]
        assert first.split()[:2] == [">q0", "3"]
        await shown.press("w")
        await shown.until(lambda: "q0: " in said(shown))
        await shown.press("j", "P", *"no", "escape", "P", *"moving", "enter")
        await shown.until(lambda: "Pause q1: done" in said(shown))
        await shown.until(lambda: any("PAUSED" in line and ">q1" in line for line in lines(shown)))
        async with server.session.get(f"{server.url}/queues/q1/settings") as answer:
            settings = await answer.json()
            assert (settings["paused"], settings["pause_reason"]) == (True, "moving")
        await shown.press("P", "y")
        await shown.until(lambda: "Resume q1: done" in said(shown))
        await shown.press("3")
        assert "[Scheduled]" in shown.head


async def test_the_worst_finding_stands_in_the_head_with_the_number_of_the_others(
    server: Watched,
) -> None:
    async with display(server) as shown:
        await shown.until(lambda: "nothing is wrong" in shown.head)
        await server.fill(7)
        await shown.until(lambda: "!! q0: no worker, 3 waiting, oldest " in shown.head)
        await shown.until(lambda: "(+2 more)" in shown.head)
        await shown.pilot.resize_terminal(30, 10)
        await shown.until(lambda: "(+2 more)" in shown.head.splitlines()[1])
        assert len(shown.head.splitlines()[1]) == 30
        async with server.holding(7):
            await shown.until(lambda: "nothing is wrong" in shown.head)


async def test_the_dead_jobs_of_a_queue_are_retried(server: Watched) -> None:
    (job,) = (
        await server.post("/jobs/bulk", {"jobs": [{"queue": "m", "type": "t", "payload": 1}]})
    )["jobs"]
    held = await server.post("/queues/m/claim", {"max": 1, "lease_ms": 60_000, "holder": "w"})
    failure = {"message": "no", "kill": True, "lease": held["jobs"][0]["lease"]}
    await server.post(f"/jobs/{job['id']}/failure", failure)
    async with display(server) as shown:
        await shown.until(lambda: "Queues" in shown.head)
        await shown.press("4")
        await shown.until(lambda: len(lines(shown)) == 2)
        await shown.press("R")
        await shown.until(lambda: isinstance(shown.app.screen, DeleteQuestion))
        late = await server.post(
            "/jobs/bulk", {"jobs": [{"queue": "m", "type": "t", "payload": 2}]}
        )
        held = await server.post("/queues/m/claim", {"max": 1, "lease_ms": 60_000, "holder": "w"})
        await server.post(
            f"/jobs/{late['jobs'][0]['id']}/failure",
            failure | {"lease": held["jobs"][0]["lease"]},
        )
        await shown.press("y")
        await shown.until(lambda: "Requeue 1 dead jobs of m: done" in said(shown))
        async with server.session.get(f"{server.url}/jobs/{late['jobs'][0]['id']}") as answer:
            assert (await answer.json())["status"] == "dead"
        async with server.session.get(f"{server.url}/jobs/{job['id']}") as answer:
            assert (await answer.json())["status"] == "ready"


async def test_queues_are_sorted_and_scrolled_by_keys(server: Watched) -> None:
    for queue, count in (("a", 1), ("b", 3), ("c", 2)):
        jobs = [{"queue": queue, "type": "t", "payload": 1}] * count
        await server.post("/jobs/bulk", {"jobs": jobs})
    async with display(server) as shown:
        await shown.until(lambda: "Queues" in shown.head)
        await shown.press("4", "s")

        def order() -> list[str]:
            return [line.removeprefix(">").split()[0] for line in lines(shown)[1:]]

        await shown.until(lambda: order() == ["b", "c", "a"])
        await shown.press("G")
        assert lines(shown)[-1].startswith(">a")
        await shown.press("g", "s", "s")
        await shown.until(lambda: order() == ["a", "b", "c"])
        await shown.press("question_mark", "escape", "tab")
        await shown.until(lambda: lines(shown)[0].split()[0] == "WORKER")


async def test_an_open_stream_is_a_worker(server: Watched) -> None:
    await server.fill(3)
    async with display(server) as shown, server.holding(3):
        await shown.until(lambda: "Workers" in shown.head)
        await shown.press("5")
        await shown.until(lambda: len(lines(shown)) == 2)
        assert lines(shown)[1].split()[1:3] == ["3", "3"]
        await shown.press("escape", "1")
        await shown.until(lambda: len(shown.rows) == 3)
        await shown.press("w")
        await shown.until(lambda: "has the job since" in shown.keys)


async def test_the_tabs_are_hidden_where_there_is_no_page(tmp_path: Path) -> None:
    async with watched(tmp_path / "data", flags=("--ui", "off")) as server:
        await server.fill(1)
        async with display(server) as shown:
            await shown.until(lambda: len(shown.rows) == 1)
            await shown.press("4", "5", "w")
            assert lines(shown) == []
            assert "Queues" not in shown.head


@pytest.mark.parametrize(
    ("patch", "result"),
    [({"a": {"c": 3}}, {"a": {"b": 1, "c": 3}}), ({"a": None}, {}), ({"a": [1]}, {"a": [1]})],
    ids=["inner", "removed", "replaced"],
)
def test_a_patch_changes_what_it_names(patch: object, result: object) -> None:
    assert merged({"a": {"b": 1}}, patch) == result
