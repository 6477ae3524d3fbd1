"""What an operator needs, in as many clicks as the page promises. Typing is free, Enter is not."""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from playwright.sync_api import Locator, Page, expect

from .place import Place, serving
from .test_pages import go


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
    hand.click(page.get_by_role("button", name="Requeue the 6 dead jobs of SMTP"))
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("6")
    hand.click(dialog.locator("footer button").last)
    expect(page.locator(".toast")).to_be_visible()
    assert status_counts(place, queue="mail", status="dead") == 0
    assert hand.clicks <= 3


def test_why_a_queue_does_not_run_is_said_after_one_click(place: Place, page: Page) -> None:
    go(page, place)
    hand = Hand(page)
    hand.click(page.locator("main tbody").get_by_role("link", name="held"))
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
    hand.click(page.get_by_role("link", name="Settings", exact=True))
    rate = page.get_by_label("Rate", exact=True)
    rate.fill("40")
    hand.click(page.get_by_role("button", name="Save 1 change…"))
    hand.click(page.get_by_role("dialog").get_by_role("button", name="Save 1 change"))
    expect(page.locator(".toast")).to_be_visible()
    settings = httpx.get(f"{place.primary}/queues/mail/settings", trust_env=False).json()
    assert settings["rate"] == 40
    assert hand.clicks <= 4


def test_a_page_of_a_queue_that_fails_leads_to_its_causes(place: Place, page: Page) -> None:
    go(page, place)
    hand = Hand(page)
    hand.click(page.get_by_role("link", name="All 1 cause"))
    expect(page.locator("main h1")).to_have_text("Failures")
    assert hand.clicks == 1
