"""What an operator needs, in as many clicks as the page promises. Typing is free, Enter is not."""

import re
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from playwright.sync_api import Locator, Page, expect

from .place import Place, serving
from .test_pages import go


@pytest.fixture
def page(same_page: Page) -> Page:
    """One page for all of this file."""
    return same_page


class Hand:
    """Someone at the page, whose clicks are counted."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.clicks = 0

    def click(self, target: Locator) -> None:
        self.clicks += 1
        target.click()

    def enter(self) -> None:
        self.clicks += 1
        self.page.keyboard.press("Enter")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    with serving(tmp_path_factory.mktemp("clicks") / "data") as place:
        with httpx.Client(base_url=place.primary, trust_env=False) as http:

            def call(method: str, path: str, body: Any) -> Any:
                reply = http.request(method, path, json=body)
                assert reply.is_success, reply.text
                return reply.json() if reply.content else None

            new = [{"queue": "mail", "type": "Welcome", "payload": n} for n in range(8)]
            call("POST", "/jobs/bulk", {"jobs": new})
            claim = {"max": 6, "lease_ms": 3_600_000, "holder": "w"}
            for job in call("POST", "/queues/mail/claim", claim)["jobs"]:
                failure = {"message": "SMTP 421", "error_type": "SmtpError", "kill": True}
                path = f"/jobs/{job['id']}/failure"
                call("POST", path, failure | {"lease": job["lease"]})
            call("PUT", "/queues/held/settings", {"paused": True, "pause_reason": "wrong list"})
            call("POST", "/jobs", {"queue": "held", "type": "t", "payload": 1})
        yield place


def status_counts(place: Place, **filters: str) -> int:
    found = httpx.get(f"{place.primary}/jobs/count", params=filters, trust_env=False).json()
    count: int = found["count"]
    return count


def test_one_cause_of_the_last_hour_is_retried_in_two_clicks(place: Place, page: Page) -> None:
    go(page, place)
    hand = Hand(page)
    hand.click(page.get_by_role("button", name="Requeue the dead jobs of SMTP"))
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("6")
    hand.click(dialog.locator("footer button").last)
    expect(page.locator(".toast")).to_be_visible()
    assert status_counts(place, queue="mail", status="dead") == 0
    assert hand.clicks <= 3


def test_why_a_queue_does_not_run_is_said_after_one_click(place: Place, page: Page) -> None:
    go(page, place)
    hand = Hand(page)
    queues = page.get_by_role("region", name="Queues", exact=True)
    hand.click(queues.get_by_role("link", name="held", exact=True))
    expect(page.locator("main")).to_contain_text("wrong list")
    assert hand.clicks <= 3


def test_why_a_queue_does_not_run_is_said_by_keyboard_alone(place: Place, page: Page) -> None:
    go(page, place)
    hand = Hand(page)
    page.keyboard.press("/")
    page.keyboard.type("held")
    hand.enter()
    expect(page.locator("main")).to_contain_text("wrong list")
    assert hand.clicks <= 3


def test_a_runaway_producer_is_limited_in_four_clicks(place: Place, page: Page) -> None:
    go(page, place)
    hand = Hand(page)
    hand.click(page.get_by_role("button", name="More for mail"))
    hand.click(page.locator(".menu").get_by_role("link", name="Settings", exact=True))
    rate = page.get_by_label("Rate", exact=True)
    rate.fill("40")
    hand.click(page.get_by_role("button", name="Save 1 change…"))
    hand.click(page.get_by_role("dialog").get_by_role("button", name="Save 1 change"))
    expect(page.locator(".toast")).to_be_visible()
    settings = httpx.get(f"{place.primary}/queues/mail/settings", trust_env=False).json()
    assert settings["rate"] == 40
    assert hand.clicks <= 4


def test_a_cancellation_of_many_is_undone_in_one_click_or_three(place: Place, page: Page) -> None:
    jobs = [{"queue": "typo", "type": "t", "payload": n} for n in range(4)]
    httpx.post(f"{place.primary}/jobs/bulk", json={"jobs": jobs}, trust_env=False)

    def cancel() -> Hand:
        go(page, place, "jobs?f=queue%3Atypo")
        page.get_by_role("button", name="Cancel all 4…").click()
        page.get_by_role("dialog").get_by_role("button", name="Cancel 4 jobs").click()
        expect(page.locator(".toast").last).to_contain_text("4 jobs of typo are cancelled.")
        return Hand(page)

    hand = cancel()
    hand.click(page.locator(".toast").get_by_role("button", name="Undo"))
    expect(page.locator(".toast").last).to_contain_text("4 jobs wait again.")
    assert status_counts(place, queue="typo", status="ready") == 4
    assert hand.clicks <= 3
    # Later, when the toast is gone.
    hand = cancel()
    hand.click(page.get_by_role("navigation", name="Pages").get_by_role("link", name="Activity"))
    hand.click(page.get_by_role("button", name=re.compile("^Undo ")).first)
    hand.click(page.get_by_role("dialog").get_by_role("button", name="Take 4 jobs back"))
    expect(page.locator(".toast").last).to_contain_text("4 jobs wait again.")
    assert status_counts(place, queue="typo", status="ready") == 4
    assert hand.clicks <= 3


def tab_to(page: Page, target: Locator) -> None:
    """Press the tabulator until this has the focus."""
    expect(target).to_be_visible()
    # A field that cannot be typed into yet is passed by.
    expect(target).to_be_enabled()
    for _ in range(60):
        page.keyboard.press("Tab")
        if target.evaluate("each => each === document.activeElement"):
            return
    pytest.fail("it is out of reach")


def test_what_a_colleague_did_is_found_and_undone_by_keyboard_alone(
    place: Place, page: Page
) -> None:
    jobs = [{"queue": "slip", "type": "t", "payload": n} for n in range(3)]
    httpx.post(f"{place.primary}/jobs/bulk", json={"jobs": jobs}, trust_env=False)
    httpx.post(f"{place.primary}/jobs/cancel?queue=slip", json={}, trust_env=False)
    go(page, place)
    page.keyboard.press("g")
    page.keyboard.press("a")
    expect(page.locator("main")).to_contain_text("cancelled 3 jobs of slip")
    sweeps = page.get_by_role("table", name="Sweeps that have changed jobs, the latest first")
    tab_to(page, sweeps.get_by_role("button", name=re.compile("^Undo ")).first)
    page.keyboard.press("Enter")
    tab_to(page, page.get_by_role("dialog").get_by_role("button", name="Take 3 jobs back"))
    page.keyboard.press("Enter")
    expect(page.locator(".toast").last).to_contain_text("3 jobs wait again.")
    assert status_counts(place, queue="slip", status="ready") == 3


def test_the_slowest_type_is_found_and_a_producer_limited_by_keyboard_alone(
    place: Place, page: Page
) -> None:
    go(page, place)
    page.keyboard.press("g")
    page.keyboard.press("q")
    tab_to(page, page.get_by_role("link", name="By type"))
    page.keyboard.press("Enter")
    types = page.get_by_role("table", name="Types of jobs, the slowest first")
    expect(types).to_contain_text("Welcome")
    page.keyboard.press("/")
    page.keyboard.type("mail")
    page.keyboard.press("Enter")
    expect(page.locator("main h1")).to_have_text("mail")
    tab_to(page, page.get_by_role("link", name="Settings", exact=True).last)
    page.keyboard.press("Enter")
    tab_to(page, page.get_by_label("Depth", exact=True))
    page.keyboard.type("77")
    page.keyboard.press("Enter")
    tab_to(page, page.get_by_role("dialog").get_by_role("button", name="Save 1 change"))
    page.keyboard.press("Enter")
    expect(page.locator(".toast").last).to_contain_text("mail: depth changed.")
    settings = httpx.get(f"{place.primary}/queues/mail/settings", trust_env=False).json()
    assert settings["max_depth"] == 77


def test_a_page_of_a_queue_that_fails_leads_to_its_causes(place: Place, page: Page) -> None:
    go(page, place)
    hand = Hand(page)
    hand.click(page.get_by_role("link", name="All 1 cause"))
    expect(page.locator("main h1")).to_have_text("Failures")
    assert hand.clicks == 1
