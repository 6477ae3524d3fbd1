"""Parts that the live stream does not carry: they are asked for again, and say of when they are."""

import re

import httpx
from playwright.sync_api import Page, expect

from .place import Place
from .test_pages import go


def budget(place: Place, allocation: int) -> None:
    """One that jobs could draw from."""
    policy = {"allocation": allocation, "strategy": {"type": "while_in_flight"}}
    url = f"{place.primary}/budgets/crm"
    assert httpx.put(url, json=policy, trust_env=False).is_success


def test_a_budget_changes_on_the_page_while_somebody_looks(place: Place, page: Page) -> None:
    budget(place, 2)
    go(page, place, "queues?tab=budgets")
    row = page.locator("main tr[data-key=crm]")
    expect(row).to_contain_text("2 of 2")
    expect(row).to_contain_text("when the job ends")
    budget(place, 7)
    expect(row).to_contain_text("7 of 7")


def test_a_part_that_fails_says_so_and_keeps_what_it_has_shown(place: Place, page: Page) -> None:
    budget(place, 3)
    go(page, place, "queues?tab=budgets")
    row = page.locator("main tr[data-key=crm]")
    expect(row).to_contain_text("3 of 3")
    asked = page.locator("main .asked")
    expect(asked).to_have_text(re.compile("^asked at [0-9:]+$"))
    page.route("**/api/budgets", lambda route: route.abort())
    failed = page.locator("main").get_by_role("alert")
    expect(failed).to_contain_text("This part cannot be asked for.")
    expect(row).to_contain_text("3 of 3")
    # The next failure changes nothing that somebody reads or has in hand.
    again = failed.get_by_role("button", name="Try again")
    again.focus()
    said = failed.element_handle()
    page.wait_for_event("requestfailed", lambda request: request.url.endswith("/api/budgets"))
    page.wait_for_event("requestfailed", lambda request: request.url.endswith("/api/budgets"))
    assert said is not None and said.evaluate("each => each.isConnected")
    expect(again).to_be_focused()
    # While the page rests, it asks for nothing by itself.
    page.keyboard.press("p")
    expect(page.locator("#live")).to_have_text("updates are paused")
    page.unroute("**/api/budgets")
    failed.get_by_role("button", name="Try again").click()
    expect(failed).to_have_count(0)
    expect(row).to_contain_text("3 of 3")
