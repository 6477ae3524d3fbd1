"""Buttons and server agree: what a key may not do, no page offers, and the server refuses."""

import re
from collections.abc import Iterator
from typing import NamedTuple

import httpx
import pytest
from playwright.sync_api import Browser, Page, Request, Route, expect

from zq.operators.page.http.session import CHANGING

from .conftest import patient
from .place import Place, key_file, seed, serving
from .test_pages import PAGES, go

SAFE = ("GET", "HEAD")
ACTED_ON = ("ready", "in_flight", "dead", "completed")
"""Statuses whose jobs have buttons of their own."""


PRESS_OTHERS = """document.querySelectorAll("main button:not([data-scope])").forEach(
    each => each.closest("[popover]") || each.click())"""
CLOSE = 'document.querySelectorAll("dialog").forEach(each => each.close())'


class Change(NamedTuple):
    """A button that changes something, and the request behind it."""

    to: str
    label: str
    scope: str
    method: str
    url: str
    body: str | None

    def sent_by(self, key: str) -> int:
        """The status of the answer to the holder of this key."""
        headers = {"Authorization": f"Bearer {key * 2}", "Content-Type": "application/json"}
        with httpx.Client(trust_env=False) as http:
            return http.request(
                self.method, self.url, content=self.body, headers=headers
            ).status_code


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    root = tmp_path_factory.mktemp("rights")
    with serving(root / "data", "--keys", str(key_file(root / "keys"))) as place:
        yield place


@pytest.fixture(scope="module")
def places(place: Place) -> list[str]:
    """Every page, with a job in each status, and each filter that brings buttons of its own."""
    headers = {"Authorization": "Bearer allall"}
    ids = seed(place.primary, headers)
    with httpx.Client(base_url=place.primary, headers=headers, trust_env=False) as http:
        http.post("/jobs", json={"queue": "swept", "type": "t", "payload": 1})
        # The page Sweeps offers to undo that.
        http.post("/jobs/cancel", params={"queue": "swept"}, json={})
        groups = http.get("/failures").json()
    cause = f"failures?error={groups['causes'][0]['id']}"
    jobs = [f"job?id={ids[status]}" for status in ACTED_ON]
    return [*PAGES.values(), "jobs?f=status%3Aready", cause, *jobs]


def sign_in(page: Page, place: Place, name: str) -> None:
    page.goto(place.ui)
    page.get_by_label("Access key").fill(name * 2)
    page.get_by_role("button", name="Sign in").click()


def sign_in_and_look(page: Page, place: Place, name: str) -> None:
    """Sign in, and wait for the overview."""
    sign_in(page, place, name)
    # The form to sign in has a heading and a button too.
    expect(page.locator("#live")).to_have_text("live")


def visit(page: Page, place: Place, to: str) -> None:
    """Open a page anew. Its first row is ticked, and a setting changed: that brings buttons of
    their own.
    """
    go(page, place, "nowhere")
    go(page, place, to)
    for box in page.locator("main tbody input[type=checkbox]").all()[:1]:
        box.check()
    for field in page.locator("[data-setting=rate] input:enabled").all():
        field.fill("1")


def offered(page: Page) -> list[tuple[str, str]]:
    """Labels and scopes of the buttons that change something and can be pressed, each once."""
    found: list[list[str]] = page.evaluate(
        """[...document.querySelectorAll("main [data-scope]")]
        .filter(each => !each.disabled && each.checkVisibility())
        .map(each => [each.textContent, each.getAttribute("data-scope")])"""
    )
    return sorted({(label, scope) for label, scope in found})


def press(page: Page, label: str) -> None:
    """Press the first button of this label. One that ends in an ellipsis asks first."""
    button = page.locator("main [data-scope]:visible").filter(
        has_text=re.compile(f"^{re.escape(label)}$")
    )
    form = button.first.locator("xpath=ancestor::form")
    for field in form.locator("[required]").all():
        field.fill("1")
    button.first.click()
    dialog = page.get_by_role("dialog")
    while label.endswith("…"):
        go = dialog.locator("footer button").last
        expect(go).to_be_visible()
        for field in dialog.locator("#typed").all():
            field.fill(dialog.locator("label[for=typed] b").inner_text())
        for field in dialog.locator("input[name=queue], input[name=text]").all():
            field.fill("mail")
        label = go.inner_text()
        if not label.endswith("…"):
            tools = dialog.locator(".stands pre").evaluate_all("all => all.map(e => e.ariaLabel)")
            assert tools in (["curl"], ["zq", "curl"]), "a dialog lacks what it stands for"
        go.click()


@pytest.fixture(scope="module")
def changes(browser: Browser, place: Place, places: list[str]) -> list[Change]:
    """What all buttons of all pages ask of the server. No request of them gets there."""
    found: list[Change] = []
    asked: list[Request] = []

    def heard(request: Request) -> None:
        if request.method not in SAFE:
            asked.append(request)

    def stop(route: Route) -> None:
        if route.request.method in SAFE:
            route.continue_()
        else:
            route.abort()

    context = patient(browser.new_context())
    page = context.new_page()
    sign_in_and_look(page, place, "all")
    page.on("request", heard)
    page.route("**/ui/api/**", stop)
    for to in places:
        visit(page, place, to)
        page.evaluate(PRESS_OTHERS)
        page.evaluate(CLOSE)
        visit(page, place, to)
        assert not asked, (to, "a button without a scope changes something")
        for label, scope in offered(page):
            with page.expect_request(lambda request: request.method not in SAFE) as info:
                press(page, label)
            request = info.value
            found.append(Change(to, label, scope, request.method, request.url, request.post_data))
            page.evaluate(CLOSE)
            if not label.endswith("…"):
                # What asks first leaves the page as it was. What acts at once may not.
                visit(page, place, to)
        asked.clear()
    context.close()
    return found


# `reader-rest` may do all that `read` may.
@pytest.mark.parametrize("name", ["reader-changer", "reader-sender", "reader-rest"])
def test_the_page_offers_what_the_server_allows(
    changes: list[Change], place: Place, page: Page, name: str
) -> None:
    scopes = {"reader-changer": {"manage"}, "reader-sender": {"enqueue"}}.get(name, set())
    sign_in_and_look(page, place, name)
    for to in dict.fromkeys(change.to for change in changes):
        visit(page, place, to)
        expected = [(c.label, c.scope) for c in changes if c.to == to and c.scope in scopes]
        assert offered(page) == expected, to
    for change in changes:
        if change.scope not in scopes:
            assert change.sent_by(name) == 403, change


def test_every_button_of_a_page_has_one_of_the_scopes_that_change_something(
    changes: list[Change],
) -> None:
    assert {change.scope for change in changes} == CHANGING
    assert "Undo…" in {change.label for change in changes}


def test_a_key_that_may_not_read_is_told_so(place: Place, page: Page) -> None:
    sign_in(page, place, "enqueue")
    expect(page.get_by_role("alert")).to_contain_text("does not have the scope read")


def test_signing_out_ends_the_session(place: Place, page: Page) -> None:
    sign_in_and_look(page, place, "read")
    page.get_by_role("button", name="Settings: zone").click()
    page.get_by_role("dialog").get_by_role("button", name="Sign out").click()
    expect(page.get_by_label("Access key")).to_be_visible()
    assert page.request.get(f"{place.ui}api/jobs").status == 401


def test_the_server_allows_what_a_page_offers(changes: list[Change]) -> None:
    # The last one of this file: these requests do what they say.
    for change in changes:
        name = {"manage": "reader-changer", "enqueue": "reader-sender"}[change.scope]
        assert change.sent_by(name) != 403, change
