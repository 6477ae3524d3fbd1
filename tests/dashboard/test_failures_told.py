"""What was pressed and cannot be done is told."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from .conftest import NewPage
from .place import Place
from .test_lists import push
from .test_pages import go

UNREACHED = "The server cannot be reached."


def press(name: str) -> Callable[[Page], None]:
    """Press the button of this name."""
    return lambda page: page.get_by_role("button", name=name).first.click()


@pytest.mark.parametrize(
    ("to", "lost", "act"),
    [
        ("activity", "**/api/audit*", press("Save all as NDJSON")),
        ("queue?name=told", "**/near", press("Pause…")),
    ],
    ids=["save", "pause"],
)
def test_a_lost_answer_is_told(
    place: Place, page: Page, to: str, lost: str, act: Callable[[Page], None]
) -> None:
    push(place, 1, "told")
    go(page, place, to)
    page.route(lost, lambda route: route.abort())
    act(page)
    expect(page.locator(".toast.failed")).to_contain_text(UNREACHED)


def test_a_script_that_cannot_be_loaded_is_told(place: Place, new_page: NewPage) -> None:
    page = new_page()
    page.route("**/actions.js", lambda route: route.abort())
    go(page, place)
    page.get_by_role("button", name="Mark this moment…").click()
    expect(page.locator(".toast.failed")).to_contain_text("This part cannot be loaded")


def test_a_browser_that_copies_nothing_is_told(place: Place, page: Page) -> None:
    push(place, 1, "told")
    go(page, place, "queue?name=told")
    page.evaluate(
        "() => { navigator.clipboard.writeText = async () => { throw new Error('no'); }; }"
    )
    page.get_by_role("button", name="Copy the name").click()
    expect(page.locator(".toast.failed")).to_contain_text("The browser lets this page copy nothing")
