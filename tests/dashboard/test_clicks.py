"""What an operator wants at night is a few clicks away: they are counted."""

import re
from typing import Any

import httpx
import pytest
from playwright.sync_api import Locator, Page, expect

from .place import Place
from .test_acting import api
from .test_lists import push
from .test_pages import go


@pytest.fixture
def page(same_page: Page) -> Page:
    """One page for all of this file."""
    return same_page


class Clicks:
    """Presses things, and counts that."""

    def __init__(self) -> None:
        self.count = 0

    def on(self, target: Locator) -> None:
        """Click once."""
        target.click()
        self.count += 1


def post(place: Place, path: str, body: Any) -> Any:
    """What the server answers."""
    reply = httpx.post(f"{place.primary}{path}", json=body, trust_env=False)
    assert reply.is_success, reply.text
    return reply.json() if reply.content else None


def head(page: Page, name: str) -> Locator:
    """A page in the head."""
    return page.get_by_role("navigation", name="Pages").get_by_role("link", name=name)


def tab(page: Page, name: str) -> Locator:
    """A part of a queue."""
    parts = page.get_by_role("navigation", name="Parts of the queue", exact=True)
    return parts.get_by_role("link", name=name, exact=True)


def test_a_runaway_producer_is_limited_in_four_clicks(place: Place, page: Page) -> None:
    push(place, 30, "runaway")
    clicks = Clicks()
    go(page, place, "queues?q=runaway")
    clicks.on(
        page.get_by_role("table", name="Queues", exact=True).get_by_role("link", name="runaway")
    )
    clicks.on(tab(page, "Settings"))
    depth = page.locator("[data-setting=max_depth] input")
    depth.fill("20")
    expect(page.locator("[data-setting=max_depth] .help")).to_contain_text("refused with 429")
    clicks.on(page.get_by_role("button", name="Save 1 change…"))
    clicks.on(page.get_by_role("dialog").get_by_role("button", name="Save 1 change"))
    expect(page.locator(".toast")).to_contain_text("runaway: depth changed.")
    assert clicks.count <= 4
    job = {"queue": "runaway", "type": "t", "payload": 1}
    assert httpx.post(f"{place.primary}/jobs", json=job, trust_env=False).status_code == 429


def test_a_rate_that_holds_a_queue_is_changed_from_where_it_says_so(
    place: Place, page: Page
) -> None:
    push(place, 40, "throttled")
    url = f"{place.primary}/queues/throttled/settings"
    httpx.patch(url, json={"concurrency": 1}, trust_env=False)
    taking: dict[str, Any] = {"queue": "throttled", "prefetch": 5, "worker": "slow"}
    take = f"{place.primary}/jobs/take"
    with httpx.stream("GET", take, params=taking, trust_env=False, timeout=60) as taken:
        lines = (line for line in taken.iter_lines() if line)
        next(lines)
        go(page, place, "queue?name=throttled")
        why = page.get_by_role("region", name="Why its jobs wait")
        expect(why).to_contain_text("It has 1 of at most 1 jobs in flight")
        clicks = Clicks()
        clicks.on(why.get_by_role("link", name="Set limit…"))
        box = page.locator("[data-setting=concurrency] input")
        expect(box).to_be_focused()
        page.keyboard.type("3")
        page.keyboard.press("Enter")
        clicks.on(page.get_by_role("dialog").get_by_role("button", name="Save 1 change"))
        expect(page.locator(".toast")).to_contain_text("throttled: in flight changed.")
        assert clicks.count <= 2
    assert api(place, "/queues/throttled/settings") == {"concurrency": 3}


def test_what_a_colleague_did_is_one_click_away_and_can_be_taken_back(
    place: Place, page: Page
) -> None:
    url = f"{place.primary}/queues/crossed/settings"
    httpx.patch(url, json={"rate": 8}, trust_env=False)
    httpx.patch(url, json={"rate": 40, "max_depth": 9}, trust_env=False)
    go(page, place)
    clicks = Clicks()
    clicks.on(head(page, "Activity"))
    rows = page.get_by_role("table", name="What operators have done").locator("tbody tr")
    row = rows.filter(has_text="crossed").first
    expect(row).not_to_contain_text("PATCH")
    assert clicks.count == 1
    clicks.on(row.get_by_role("button", name=re.compile("^Undo ")))
    expect(page.get_by_role("dialog")).to_contain_text("max_depth: not set")
    clicks.on(page.get_by_role("dialog").get_by_role("button", name="Set it back"))
    expect(page.locator(".toast")).to_contain_text("The settings of crossed are as they were.")
    assert api(place, "/queues/crossed/settings") == {"rate": 8}
    assert clicks.count <= 3


def test_activity_is_filtered_by_who_did_what_where(place: Place, page: Page) -> None:
    for queue in ("left", "right"):
        url = f"{place.primary}/queues/{queue}/settings"
        httpx.patch(url, json={"max_depth": 9}, trust_env=False)
    go(page, place, "activity")
    table = page.get_by_role("table", name="What operators have done")
    expect(table).to_contain_text("right")
    page.get_by_label("Queue", exact=True).fill("left")
    page.get_by_role("button", name="Show").click()
    expect(page).to_have_url(re.compile("queue=left"))
    expect(table.locator("tbody tr")).to_have_count(1)
    expect(table).to_contain_text("left")
    page.locator("select[name=verb]").select_option("delete")
    expect(page.get_by_text("No such action")).to_be_visible()


def test_why_a_queue_does_not_run_is_two_clicks_away(place: Place, page: Page) -> None:
    push(place, 3, "stalled")
    httpx.patch(f"{place.primary}/queues/stalled/settings", json={"paused": True}, trust_env=False)
    go(page, place)
    clicks = Clicks()
    clicks.on(head(page, "Queues"))
    # The overview has such a table too, and names the queue among what is wrong.
    queues = page.get_by_role("table", name="Queues", exact=True)
    clicks.on(queues.get_by_role("link", name="stalled", exact=True))
    why = page.get_by_role("region", name="Why its jobs wait")
    expect(why).to_contain_text("It is paused: resume it to have its jobs delivered.")
    assert clicks.count <= 3


def test_the_slowest_type_is_two_clicks_away(place: Place, page: Page) -> None:
    for type in ("Quick", "Slow"):
        job = {"queue": "timed", "type": type, "payload": 1}
        httpx.post(f"{place.primary}/jobs", json=job, trust_env=False)
        claim = {"max": 1, "lease_ms": 60_000, "holder": "w-1"}
        taken: Any = post(place, "/queues/timed/claim", claim)
        job_id, lease = taken["jobs"][0]["id"], taken["jobs"][0]["lease"]
        post(place, f"/jobs/{job_id}/success", {"lease": lease})
    go(page, place)
    clicks = Clicks()
    clicks.on(head(page, "Queues"))
    parts = page.get_by_role("navigation", name="Parts of the queues", exact=True)
    clicks.on(parts.get_by_role("link", name="By type"))
    table = page.get_by_role("table", name="Types of jobs, the slowest first")
    rows = table.locator("tbody tr", has_text="timed")
    expect(rows).to_have_count(2)
    expect(rows.filter(has_text="Slow")).to_contain_text(re.compile(r"\d (ms|s|m)"))
    assert clicks.count <= 2
    rows.filter(has_text="Slow").hover()
    page.get_by_role("button", name="Chart of Slow in timed").click()
    course = page.get_by_role("region", name="Course of Slow")
    expect(course).to_be_visible()
    # It is closed by the same button, while the pointer is on it.
    page.get_by_role("button", name="Chart of Slow in timed").click()
    expect(course).to_have_count(0)
    page.get_by_role("button", name="Chart of Slow in timed").click()
    expect(course.get_by_role("slider", name="Run time: Slow")).to_be_visible()
    expect(course.locator("svg.lines path.ln.p99, svg.lines path.pt.p99").first).to_be_attached()
    table.get_by_role("button", name="failed %").click()
    expect(page.get_by_role("table", name="Types of jobs, the most failing first")).to_be_visible()
    course.get_by_role("button", name="Close the charts").click()
    expect(course).to_have_count(0)


def test_a_worker_is_a_page_with_its_jobs(place: Place, page: Page) -> None:
    push(place, 3, "served")
    taking: dict[str, Any] = {"queue": "served", "prefetch": 3, "worker": "w-7"}
    url = f"{place.primary}/jobs/take"
    with httpx.stream("GET", url, params=taking, trust_env=False, timeout=60) as taken:
        lines = (line for line in taken.iter_lines() if line)
        next(lines)
        go(page, place)
        head(page, "Workers").click()
        streams = page.get_by_role("table", name="Open streams")
        streams.get_by_role("link", name="w-7", exact=True).click()
        expect(page.locator("main h1")).to_have_text("w-7")
        rows = page.get_by_role("table", name="Jobs of w-7").locator("tbody tr")
        expect(rows).to_have_count(3)
        expect(rows.first).to_contain_text("served")
    expect(page.locator("main")).to_contain_text("w-7 has no open stream")


def test_an_address_without_a_name_offers_nothing(place: Place, page: Page) -> None:
    for to in ("queue", "queue?name=", "workers?id="):
        go(page, place, to)
        expect(page.locator("main .empty")).to_be_visible()
        expect(page.locator("main [data-scope]")).to_have_count(0)


def test_a_cause_is_acted_on_from_its_row_and_the_card_follows_the_row(
    place: Place, ids: dict[str, str], page: Page
) -> None:
    go(page, place, "failures")
    rows = page.get_by_role("table", name="Causes of failures in 60 minutes").locator("tbody tr")
    row = rows.filter(has_text="SmtpError")
    row.get_by_role("link").first.click()
    expect(page).to_have_url(re.compile("cause="))
    card = page.get_by_role("region", name="The cause that is chosen")
    expect(card).to_contain_text("SMTP 421 for 'ann'")
    expect(row).to_have_class("here")
    page.get_by_label("only with dead jobs").check()
    expect(page).to_have_url(re.compile("dead=1"))
    row.get_by_role("button", name="Requeue the dead jobs").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.locator("h2")).to_contain_text("3")
    page.keyboard.press("Escape")
    page.get_by_role("group", name="Range").get_by_role("button", name="24 h").click()
    expect(page).to_have_url(re.compile("range=24h"))
