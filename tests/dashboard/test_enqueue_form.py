"""The form that enqueues: what is sent once is stored once."""

from typing import Any

import httpx
import pytest
from playwright.sync_api import Page, Route, expect

from .place import Place, until
from .test_acting import api
from .test_pages import go


@pytest.fixture
def page(same_page: Page) -> Page:
    """One page for all of this file."""
    return same_page


def fill(page: Page, payload: str) -> None:
    """Fill the form in."""
    page.get_by_label("Type", exact=True).fill("t")
    page.get_by_label("Payload (JSON)").fill(payload)


def payloads(place: Place, queue: str) -> list[Any]:
    """Those of the jobs that are stored, the first one first."""
    jobs: Any = api(place, f"/jobs?queue={queue}")["jobs"]
    return [job["payload"] for job in jobs]


def test_a_double_click_stores_one_job(place: Place, page: Page) -> None:
    go(page, place, "queue?name=twice&tab=enqueue")
    fill(page, "1")
    held: list[Route] = []
    page.route("**/api/jobs", lambda route: held.append(route))
    page.get_by_role("button", name="Enqueue", exact=True).dblclick()
    button = page.get_by_role("button", name="Enqueue", exact=True)
    expect(button).to_be_disabled()
    until(lambda: page.evaluate("1") and held)
    (only,) = held
    only.continue_()
    expect(page.locator("output")).to_contain_text("Stored as")
    expect(button).to_be_enabled()
    assert payloads(place, "twice") == [1]


def test_a_job_whose_answer_was_lost_is_stored_once_by_another_press(
    place: Place, page: Page
) -> None:
    go(page, place, "queue?name=lost-answer&tab=enqueue")
    button = page.get_by_role("button", name="Enqueue", exact=True)
    lose_answers(page)
    fill(page, "1")
    button.click()
    expect(page.locator("output")).to_have_text("The server cannot be reached.")
    page.unroute_all()
    button.click()
    expect(page.locator("output")).to_contain_text("Stored as")
    # The same once more, on purpose, is another job; and so is what was changed.
    fill(page, "1")
    lose_answers(page)
    button.click()
    expect(page.locator("output")).to_have_text("The server cannot be reached.")
    page.unroute_all()
    fill(page, "2")
    button.click()
    expect(page.locator("output")).to_contain_text("Stored as")
    assert payloads(place, "lost-answer") == [1, 1, 2]


def lose_answers(page: Page) -> None:
    """Have the server store, and the page hear nothing."""

    def lose(route: Route) -> None:
        route.fetch()
        route.abort()

    page.route("**/api/jobs", lose)


def test_an_entry_of_cron_runs_once_however_often_it_is_pressed(place: Place, page: Page) -> None:
    entry = {
        "name": "once",
        "expression": "0 3 29 2 *",
        "job": {"queue": "cron-once", "type": "t", "payload": 1},
    }
    url = f"{place.primary}/crons/pressed"
    assert httpx.put(url, json={"entries": [entry]}, trust_env=False).is_success
    go(page, place, "schedules")
    page.get_by_role("button", name="More for pressed / once").click()
    page.get_by_role("button", name="Run now…").click()
    dialog = page.get_by_role("dialog")
    lose_answers(page)
    dialog.get_by_role("button", name="Run now").dblclick()
    expect(dialog.get_by_role("alert")).to_contain_text("The server cannot be reached.")
    page.unroute_all()
    dialog.get_by_role("button", name="Run now").click()
    expect(page.locator(".toast")).to_contain_text("is stored")
    assert payloads(place, "cron-once") == [1]
