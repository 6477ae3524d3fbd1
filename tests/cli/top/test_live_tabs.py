"""The tabs Queues, Failures and Workers, and what their keys do."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from urllib.parse import quote

import pytest
from textual.widgets import Static

from zq.operators.admin.cli.live_tabs import LiveTable
from zq.operators.admin.cli.screens import FairKeysPage, Question
from zq.operators.page.client import merged

from .watched import Display, Watched, display, watched


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Watched]:
    async with watched(tmp_path / "data") as server:
        yield server


def lines(shown: Display) -> list[str]:
    """The rows of the tab."""
    table = shown.app.main.query_one(LiveTable)
    texts = (
        [table.render_line(y).text for y in range(table.size.height)]
        if table.rows is not None
        else []
    )
    return [text.rstrip() for text in texts if text.strip()]


async def test_a_queue_is_paused_resumed_and_asked_why_it_waits(server: Watched) -> None:
    await server.fill(7)
    async with display(server, tab="") as shown:
        await shown.until(lambda: len(lines(shown)) == 4)
        heading, first, *_ = lines(shown)
        assert heading.split()[:2] == ["QUEUE", "WAITING"]
        assert first.split()[:2] == [">q0", "3"]
        await shown.press("w")
        await shown.until(lambda: "q0: " in shown.keys)
        await shown.press("j", "P", *"no", "escape", "P", *"moving", "enter")
        await shown.until(lambda: "Pause q1: done" in shown.keys)
        await shown.until(
            lambda: any("paused (moving)" in line and ">q1" in line for line in lines(shown))
        )
        async with server.session.get(f"{server.url}/queues/q1/settings") as answer:
            settings = await answer.json()
            assert (settings["paused"], settings["pause_reason"]) == (True, "moving")
        await shown.press("P", "y")
        await shown.until(lambda: "Resume q1: done" in shown.keys)
        await shown.press("6")
        assert "[6 Scheduled]" in shown.head


async def test_the_worst_finding_stands_in_the_head_with_the_number_of_the_others(
    server: Watched,
) -> None:
    async with display(server, tab="") as shown:
        await shown.until(lambda: "nothing is wrong" in shown.head)
        await server.die("m", ["no route"] * 5)
        await shown.until(lambda: "!! failing: m 100 % of attempts" in shown.head)
        # Of the dead jobs, at least; a slow disk would be another one.
        await shown.until(lambda: " more)" in shown.head)
        await shown.pilot.resize_terminal(30, 10)
        await shown.until(lambda: len(shown.head.splitlines()[3]) == 30)
        assert shown.head.splitlines()[3].endswith(" more)")


async def test_the_dead_jobs_of_a_queue_are_retried(server: Watched) -> None:
    (job,) = (
        await server.post("/jobs/bulk", {"jobs": [{"queue": "m", "type": "t", "payload": 1}]})
    )["jobs"]
    held = await server.post("/queues/m/claim", {"max": 1, "lease_ms": 60_000, "holder": "w"})
    failure = {"message": "no", "kill": True, "lease": held["jobs"][0]["lease"]}
    await server.post(f"/jobs/{job['id']}/failure", failure)
    async with display(server, tab="") as shown:
        await shown.until(lambda: len(lines(shown)) == 2)
        await shown.press("R")
        await shown.until(lambda: isinstance(shown.app.screen, Question))
        late = await server.post(
            "/jobs/bulk", {"jobs": [{"queue": "m", "type": "t", "payload": 2}]}
        )
        held = await server.post("/queues/m/claim", {"max": 1, "lease_ms": 60_000, "holder": "w"})
        await server.post(
            f"/jobs/{late['jobs'][0]['id']}/failure",
            failure | {"lease": held["jobs"][0]["lease"]},
        )
        await shown.press("y")
        await shown.until(lambda: "Requeue 1 dead jobs of m: done" in shown.keys)
        async with server.session.get(f"{server.url}/jobs/{late['jobs'][0]['id']}") as answer:
            assert (await answer.json())["status"] == "dead"
        async with server.session.get(f"{server.url}/jobs/{job['id']}") as answer:
            assert (await answer.json())["status"] == "ready"


async def test_queues_are_sorted_and_scrolled_by_keys(server: Watched) -> None:
    for queue, count in (("a", 1), ("b", 3), ("c", 2)):
        jobs = [{"queue": queue, "type": "t", "payload": 1}] * count
        await server.post("/jobs/bulk", {"jobs": jobs})
    async with display(server, tab="") as shown:
        await shown.until(lambda: len(lines(shown)) == 4)
        await shown.press("s")

        def order() -> list[str]:
            return [line.removeprefix(">").split()[0] for line in lines(shown)[1:]]

        await shown.until(lambda: order() == ["b", "c", "a"])
        await shown.press("G")
        assert lines(shown)[-1].startswith(">a")
        await shown.press("g", "s", "s")
        await shown.until(lambda: order() == ["a", "b", "c"])
        await shown.press("question_mark", "escape", "tab", "tab")
        await shown.until(lambda: "".join(lines(shown)).startswith(" WORKER"))


async def test_the_fair_keys_of_a_queue_are_shown_by_share_wait_and_depth(server: Watched) -> None:
    def keys(shown: Display) -> list[list[str]]:
        texts = str(shown.app.screen.query_one(Static).render()).splitlines()
        return [text.split() for text in texts]

    jobs = [{"queue": "m", "type": "t", "payload": 1, "fair_key": key} for key in "abbccc"]
    await server.post("/jobs/bulk", {"jobs": jobs})
    async with display(server, tab="") as shown:
        await shown.until(lambda: lines(shown)[1:2] != [])
        await shown.press("f")
        await shown.until(
            lambda: isinstance(shown.app.screen, FairKeysPage) and len(keys(shown)) == 5
        )
        head, heading, *rows = keys(shown)
        assert head[:5] == ["Keys", "of", "m", "by", "share"]
        assert heading[:4] == ["KEY", "SHARE", "BEHIND", "WAITING"]
        assert [row[0] for row in rows] == ["a", "b", "c"]
        await shown.press("s", "s")
        await shown.until(lambda: keys(shown)[0][4] == "depth")
        assert [row[0] for row in keys(shown)[2:]] == ["c", "b", "a"]
        await shown.press("escape", "w")
        await shown.until(lambda: "m: " in shown.keys)


async def test_an_open_stream_is_a_worker(server: Watched) -> None:
    await server.fill(3)
    async with display(server, tab="") as shown, server.holding(3):
        await shown.until(lambda: "Workers" in shown.head)
        await shown.press("3")
        await shown.until(lambda: "1 of 1" in "".join(lines(shown)))
        await shown.until(lambda: lines(shown)[1].split()[4] == "3")
        await shown.press("4")
        await shown.until(lambda: len(shown.rows) == 3)
        await shown.press("w")
        await shown.until(lambda: "has the job since" in shown.keys)


async def test_the_tabs_are_hidden_where_there_is_no_page(tmp_path: Path) -> None:
    async with watched(tmp_path / "data", flags=("--ui", "off")) as server:
        await server.fill(1)
        async with display(server, tab="") as shown:
            await shown.until(lambda: len(shown.rows) == 1)
            await shown.press("1", "2", "3", "w")
            assert lines(shown) == []
            assert "Queues" not in shown.head


@pytest.mark.parametrize(
    ("patch", "result"),
    [({"a": {"c": 3}}, {"a": {"b": 1, "c": 3}}), ({"a": None}, {}), ({"a": [1]}, {"a": [1]})],
    ids=["inner", "removed", "replaced"],
)
def test_a_patch_changes_what_it_names(patch: object, result: object) -> None:
    assert merged({"a": {"b": 1}}, patch) == result


async def test_the_queues_come_first_and_fit_a_small_terminal_with_their_states(
    server: Watched,
) -> None:
    names = ["sums", "reports-of-the-whole-fleet-of-devices-in-the-north", "odd\u202e\x1b2Jname"]
    jobs = [{"queue": name, "type": "t" * 500, "payload": 1} for name in names]
    await server.post("/jobs/bulk", {"jobs": jobs})
    for name in names:
        path = f"/queues/{quote(name, safe='')}/settings"
        pause = {"paused": True, "pause_reason": "the disk is being moved"}
        async with server.session.patch(server.url + path, json=pause) as answer:
            assert answer.ok
    async with display(server, 80, 24, tab="") as shown:
        await shown.until(lambda: "".join(lines(shown)).count("paused") == 3)
        assert "[1 Queues]" in shown.head
        assert all(f"{at} " in shown.head.splitlines()[-1] for at in range(1, 7))
        assert all(len(line) <= 80 for line in shown.head.splitlines())
        heading, *rows = lines(shown)
        assert heading.endswith("STATE")
        place = heading.index("STATE")
        assert all(row[place:] == "paused" for row in rows)
        assert "\u202e" not in "".join(rows)
        await shown.until(lambda: shown.app.main.query_one(LiveTable).size.height == 24 - 6)


async def test_a_state_has_a_colour_that_tells_how_bad_it_is(server: Watched) -> None:
    await server.die("m", ["no route"] * 5)
    async with display(server, tab="") as shown:
        await shown.until(lambda: "failing" in "".join(lines(shown)))
        strip = shown.app.main.query_one(LiveTable).render_line(1)
        (state,) = [each for each in strip if each.text.startswith("failing")]
        assert state.style is not None
        assert state.style.color is not None
        assert state.style.color.name == "red"


async def test_the_dead_of_one_cause_are_requeued_from_the_failures(server: Watched) -> None:
    await server.die("m", ["no route", "disk is full"])
    async with display(server, tab="2") as shown:
        await shown.until(lambda: len(lines(shown)) == 3)
        while "no route" not in next(line for line in lines(shown) if line[0] == ">"):
            await shown.press("j", "j") if ">" in lines(shown)[1] else await shown.press("k")
        await shown.press("R")
        await shown.until(lambda: isinstance(shown.app.screen, Question))
        await shown.press("y")
        await shown.until(lambda: "Requeue 1 dead jobs of this cause: done" in shown.keys)
    async with server.session.get(f"{server.url}/jobs?status=dead") as answer:
        (left,) = (await answer.json())["jobs"]
    assert left["payload"] == "disk is full"


async def test_every_tab_says_when_the_server_is_lost_and_how_old_it_is(tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        async with watched(tmp_path / "data") as server:
            await server.fill(3)
            shown = await stack.enter_async_context(display(server, tab=""))
            await shown.until(lambda: len(lines(shown)) == 4 and "dead 0" in shown.head)
        for key in "123456":
            await shown.press(key)
            await shown.until(lambda: "! not connected" in shown.head.splitlines()[0])
            await shown.until(lambda: "what is shown is" in shown.head.splitlines()[0])


async def test_jobs_that_wait_for_budgets_and_groups_are_in_the_list(server: Watched) -> None:
    bound = [
        {"key": "crm", "create_with": {"allocation": 1, "strategy": {"type": "while_in_flight"}}}
    ]
    jobs = [{"queue": "crm", "type": "bound", "payload": n, "budgets": bound} for n in range(3)]
    jobs += [{"queue": "line", "type": "t", "payload": n, "group": "one"} for n in range(3)]
    ids = [job["id"] for job in (await server.post("/jobs/bulk", {"jobs": jobs}))["jobs"]]
    async with display(server) as shown, server.holding(2):
        await shown.until(lambda: len(shown.rows) == 4)
        waiting = {ids[at] for at in (1, 2, 4, 5)}
        await shown.until(lambda: {row[0] for row in shown.rows} == waiting)
        await shown.press("slash", *"bound", "enter")
        await shown.until(lambda: shown.cursor in ids[1:3])
        await shown.press("w")
        await shown.until(lambda: "budget" in shown.keys and "crm" in shown.keys)
        await shown.press("G")
        await shown.until(lambda: shown.cursor in waiting)
