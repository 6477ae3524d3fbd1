"""The windows that viewers choose of a list, and what they search in it."""

from typing import Any

import pytest
from conformance.client import Client

from .viewing import ADMIN, HEAD, NOBODY, TAIL, Watcher, ids

pytestmark = pytest.mark.settings(**ADMIN)

# Windows


@pytest.mark.parametrize(
    ("anchor", "first"),
    [
        (HEAD, 0),
        (TAIL, 7),
        ({"kind": "offset", "offset": 0}, 0),
        ({"kind": "offset", "offset": 4}, 4),
        ({"kind": "offset", "offset": 6}, 6),
        ({"kind": "offset", "offset": 10**30}, 7),
    ],
)
async def test_a_window_is_where_its_anchor_says(
    watcher: Watcher, client: Client, anchor: dict[str, Any], first: int
) -> None:
    jobs = await client.enqueue_many(10)

    window = await watcher.subscribe("ready", anchor, 3)

    assert ids(window) == jobs[first : first + 3]
    assert (window["first_position"], window["total"]) == (first, 10)
    assert "resolved_anchor" not in window


@pytest.mark.parametrize(("at", "first"), [(0, 0), (5, 4), (9, 7)])
async def test_a_window_around_a_job_has_it_in_the_middle_and_goes_with_it(
    watcher: Watcher, client: Client, at: int, first: int
) -> None:
    jobs = await client.enqueue_many(10)

    window = await watcher.subscribe("ready", {"kind": "around", "id": jobs[at]}, 3)
    assert ids(window) == jobs[first : first + 3]
    assert (window["resolved_anchor"], window["first_position"]) == (jobs[at], first)

    better = (await client.enqueue(priority=1))["id"]
    if first:  # all positions are others
        snapshot = await watcher.hear_of("job_snapshot")
        assert ids(snapshot["ready"]) == jobs[first : first + 3]
        assert snapshot["ready"]["first_position"] == first + 1
    else:
        assert await watcher.changes(2) == [("ready_removed", jobs[2]), ("ready", better)]


@pytest.mark.parametrize(
    ("fallback", "shown"),
    [
        ({}, []),
        ({"fallback": "nowhere"}, []),
        ({"fallback": "head"}, [0]),
        ({"fallback": "tail"}, [1]),
    ],
)
@pytest.mark.parametrize("id", [NOBODY, "no id"])
async def test_a_window_around_a_job_that_is_not_there_falls_back(
    watcher: Watcher, client: Client, id: str, fallback: dict[str, str], shown: list[int]
) -> None:
    jobs = await client.enqueue_many(2)

    window = await watcher.subscribe("ready", {"kind": "around", "id": id, **fallback}, 1)

    assert ids(window) == [jobs[index] for index in shown]
    assert window["total"] == 2


@pytest.mark.parametrize("list", ["in_flight", "scheduled"])
async def test_the_other_lists_have_windows_too(
    watcher: Watcher, client: Client, list: str
) -> None:
    jobs = [await client.make(list, queue=f"q{n}") for n in range(4)]

    tail = await watcher.subscribe(list, TAIL, 2)
    around = await watcher.subscribe(list, {"kind": "around", "id": jobs[1]}, 2)

    assert ids(tail) == jobs[2:]
    assert tail["first_position"] == 2
    assert ids(around) == jobs[:2]


# Searches


async def found(watcher: Watcher, **changes: Any) -> tuple[int | None, list[str]]:
    """(position, ids of the window) of what a search finds."""
    usual = {"list": "ready", "anchor": {"kind": "start"}, "direction": "forward", "limit": 1}
    await watcher.say(**{"type": "find", **usual, **changes})
    event = await watcher.hear_of("find_result")
    assert event["list"] == changes.get("list", "ready")
    return event["matched_position"], ids(event["window"])


async def test_a_search_goes_from_match_to_match_either_way(
    watcher: Watcher, client: Client
) -> None:
    names = [("mail-in", "send"), ("web", "crawl"), ("mail-out", "send"), ("web", "send")]
    jobs = [(await client.enqueue(queue=q, type=t))["id"] for q, t in names]
    mail = {"queues": ["mail"]}

    def beyond(index: int) -> dict[str, Any]:
        return {"kind": "job_id", "id": jobs[index]}

    assert await found(watcher, query=mail) == (0, [jobs[0]])
    assert await found(watcher, query=mail, anchor=beyond(0)) == (2, [jobs[2]])
    assert await found(watcher, query=mail, anchor=beyond(2)) == (None, [])
    backward = {"direction": "backward", "query": mail}
    assert await found(watcher, **backward, anchor={"kind": "end"}) == (2, [jobs[2]])
    assert await found(watcher, **backward, anchor=beyond(2)) == (0, [jobs[0]])
    # The words of a field are alternatives; both fields have to match.
    both = {"queues": ["web", "in"], "types": ["nd"]}
    assert await found(watcher, query=both, anchor=beyond(0)) == (3, [jobs[3]])
    # A job that is not there is as good as the end that it comes from.
    gone = {"kind": "job_id", "id": NOBODY}
    assert await found(watcher, query=mail, anchor=gone) == (0, [jobs[0]])
    assert await found(watcher, **backward, anchor=gone) == (2, [jobs[2]])
    # There is nothing beyond an end.
    assert await found(watcher, **backward) == (None, [])
    assert await found(watcher, anchor={"kind": "end"}) == (None, [])


async def test_a_search_can_locate_a_job(watcher: Watcher, client: Client) -> None:
    jobs = await client.enqueue_many(5)
    locate = {"direction": "locate", "limit": 3}

    there = {"kind": "job_id", "id": jobs[3]}
    assert await found(watcher, **locate, anchor=there) == (3, jobs[2:])
    nobody = {"kind": "job_id", "id": NOBODY}
    assert await found(watcher, **locate, anchor=nobody) == (None, [])


@pytest.mark.parametrize("list", ["in_flight", "scheduled"])
async def test_the_other_lists_are_searched_too(
    watcher: Watcher, client: Client, list: str
) -> None:
    await client.make(list, queue="web")
    sought = await client.make(list, queue="mail")

    assert await found(watcher, list=list, query={"queues": ["mail"]}) == (1, [sought])
