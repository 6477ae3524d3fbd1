"""Times on the page: zones, the night in which an hour comes twice, and clocks that differ."""

import re
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest
from playwright.sync_api import Browser, BrowserContext, Locator, Page, expect

from .conftest import PATIENCE_MS, NewPage, patient
from .place import Place
from .test_acting import api
from .test_lists import push
from .test_pages import go


def set_clock(page: Page, hours: float) -> None:
    """Have the browser's clock differ by so much."""
    page.add_init_script(f"const now = Date.now; Date.now = () => now() + {hours * 3_600_000};")


def milliseconds(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1000)


TWICE = ("2060-10-31T00:30:00", "2060-10-31T01:30:00")
"""In Berlin it is half past two at both, for the clocks are set back between them."""


def scheduled(page: Page) -> Locator:
    """The table of the jobs that come next."""
    return page.get_by_role("table", name="Scheduled jobs, the next one first")


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    context = patient(browser.new_context(timezone_id="Europe/Berlin"))
    yield context
    context.close()


def test_an_hour_that_comes_twice_is_told_apart_and_utc_is_a_key_away(
    place: Place, page: Page
) -> None:
    for at in TWICE:
        job = {"queue": "night", "type": "t", "payload": 1, "ready_at": milliseconds(at)}
        httpx.post(f"{place.primary}/jobs", json=job, trust_env=False)
    go(page, place, "schedules")
    times = scheduled(page).locator("tr", has_text="night").locator("td:nth-child(3) time")
    late, early = "31 Oct 2060, 02:30:00 CET", "31 Oct 2060, 02:30:00 CEST"
    expect(times).to_have_text([early, late])
    expect(times.last).to_have_attribute("title", "2060-10-31T01:30:00.000Z")
    page.keyboard.press("z")
    expect(times).to_have_text(["31 Oct 2060, 00:30:00 UTC", "31 Oct 2060, 01:30:00 UTC"])
    page.reload()
    expect(times.first).to_have_text("31 Oct 2060, 00:30:00 UTC")
    page.keyboard.press("?")
    expect(page.get_by_label("Times in")).to_have_value("UTC")


def test_an_entry_of_cron_shows_its_own_zone_and_the_viewer_s(place: Place, page: Page) -> None:
    entry = {
        "name": "noon",
        "expression": "0 12 * * *",
        "timezone": "Asia/Tokyo",
        "job": {"queue": "later", "type": "t", "payload": 1},
    }
    url = f"{place.primary}/crons/tokyo"
    assert httpx.put(url, json={"entries": [entry]}, trust_env=False).is_success
    go(page, place, "schedules")
    row = page.locator("main tr[data-key='tokyo noon'] td")
    expect(row.nth(3)).to_contain_text("12:00:00 GMT+9")
    row.nth(2).locator("time").hover()
    expect(row.nth(2).locator("time")).to_have_attribute("title", re.compile("0[45]:00:00 CES?T"))


def test_scheduled_jobs_stand_in_the_order_of_their_times_page_by_page(
    place: Place, page: Page
) -> None:
    now = int(time.time() * 1000)
    jobs = [
        {"queue": "soon", "type": "t", "payload": n, "ready_at": now + 3_600_000 * (100 - n)}
        for n in range(60)
    ]
    httpx.post(f"{place.primary}/jobs/bulk", json={"jobs": jobs}, trust_env=False)
    go(page, place, "schedules")
    times = scheduled(page).locator("td:nth-child(3) time")
    expect(times).to_have_count(50)
    shown = times.evaluate_all("all => all.map(each => each.dateTime)")
    assert shown == sorted(shown)
    page.get_by_role("button", name="Later ones").click()
    expect(page.get_by_role("button", name="Later ones")).to_have_count(0)
    later = times.evaluate_all("all => all.map(each => each.dateTime)")
    assert shown[-1] < later[0]
    assert later == sorted(later)
    page.get_by_role("button", name="Next ones").click()
    expect(times.first).to_have_attribute("datetime", shown[0])


@pytest.mark.parametrize(("seconds", "said"), [(90, True), (-90, True), (5, False)], ids=str)
def test_clocks_that_differ_are_named(place: Place, page: Page, seconds: int, said: bool) -> None:
    set_clock(page, seconds / 3600)
    page.goto(place.ui)
    expect(page.locator("#live")).to_have_text("live")
    expect(page.locator("main[aria-busy]")).to_have_count(0)
    banners = page.locator("#banners .banner", has_text="Clocks differ")
    expect(banners).to_have_count(int(said))
    if said:
        # What the answer took to come is a part of it.
        expect(banners).to_contain_text(re.compile(r"^Clocks differ by 1 min \d+ s"))


def pause_for_an_hour(place: Place, page: Page, queue: str) -> int:
    """Pause it. Return how many milliseconds after the press of the button the pause ends."""
    page.get_by_role("button", name="Pause…").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Pause for").fill("1h")
    expect(dialog).to_contain_text("1 h, until")
    before = time.time_ns() // 1_000_000
    dialog.get_by_role("button", name="Pause", exact=True).click()
    expect(page.locator(".toast")).to_contain_text(f"{queue} is paused.")
    paused: Any = api(place, f"/queues/{queue}/settings")
    return int(paused["paused_until"]) - before


def test_a_pause_lasts_as_long_as_it_was_typed_whatever_the_browsers_clock_says(
    place: Place, page: Page
) -> None:
    set_clock(page, -2)
    push(place, 1, "slow-clock")
    go(page, place, "queue?name=slow-clock")
    assert abs(pause_for_an_hour(place, page, "slow-clock") - 3_600_000) < PATIENCE_MS


def test_a_pause_begins_when_the_button_is_pressed(place: Place, page: Page) -> None:
    push(place, 1, "pressed")
    go(page, place, "queue?name=pressed")
    assert pause_for_an_hour(place, page, "pressed") >= 3_600_000


def test_ages_in_a_filter_and_moves_go_by_the_servers_clock(place: Place, page: Page) -> None:
    set_clock(page, 2)
    job = {"queue": "fast-clock", "type": "t", "payload": 1}
    id = httpx.post(f"{place.primary}/jobs", json=job, trust_env=False).json()["id"]
    go(page, place, "jobs?f=queue:fast-clock age:>1h")
    expect(page.locator("main")).to_contain_text("No job matches")
    go(page, place, "jobs?f=queue:fast-clock age:<1h")
    row = page.locator(f"main tr[data-key='{id}']")
    expect(row.locator("time")).to_have_text(re.compile(r"^[\d.]+ s$"))
    row.get_by_role("button", name="More for").click()
    page.get_by_role("button", name="Move…").click()
    page.get_by_role("dialog").get_by_label("Ready in").fill("1h")
    before = time.time() * 1000
    page.get_by_role("dialog").get_by_role("button", name="Move", exact=True).click()
    expect(page.locator(".toast")).to_contain_text("is scheduled")
    moved: Any = api(place, f"/jobs/{id}")
    assert abs(moved["ready_at"] - before - 3_600_000) < PATIENCE_MS
    go(page, place, "schedules")
    due = scheduled(page).locator(f"tr[data-key='{id}'] time").first
    expect(due).to_have_text(re.compile("^(60|59) m$"))
    go(page, place, "activity?since=1h")
    expect(page.locator("main time[data-age]").first).to_have_text(re.compile(r"^[\d.]+ m?s$"))


def test_no_key_acts_while_somebody_types_or_once_keys_are_off(place: Place, page: Page) -> None:
    go(page, place, "jobs")
    page.locator("#filter").press_sequentially("gopztxr?/")
    assert page.url.endswith("#/jobs")
    expect(page.locator("#filter")).to_have_value("gopztxr?/")
    expect(page.locator("#updates")).to_have_attribute("aria-pressed", "false")
    page.locator("#main").focus()
    page.keyboard.press("p")
    expect(page.locator("#live")).to_have_text("updates are paused")
    page.keyboard.press("p")
    page.keyboard.press("t")
    expect(page.locator("html")).to_have_attribute("data-theme", "light")
    page.keyboard.press("?")
    page.get_by_label("Keys", exact=True).uncheck()
    page.keyboard.press("Escape")
    for key in ("p", "g", "o"):
        page.keyboard.press(key)
    assert page.url.endswith("#/jobs")
    expect(page.locator("#updates")).to_have_attribute("aria-pressed", "false")


def test_nothing_moves_for_those_who_want_that(place: Place, new_page: NewPage) -> None:
    page = new_page(reduced_motion="reduce")
    go(page, place)
    moving = """[...document.querySelectorAll("*")].filter((each) => {
        const style = getComputedStyle(each);
        return style.transitionDuration !== "0s" || style.animationName !== "none";
    }).length"""
    assert page.evaluate(moving) == 0
    page.emulate_media(reduced_motion="no-preference")
    assert page.evaluate(moving) > 0
