"""Answers that come late, or when nobody waits for them any more: the page shows no older state."""

import re
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Page, Route, expect

from .conftest import NewPage
from .place import Place, key_file, serving, until
from .test_clicks import post
from .test_lists import push
from .test_pages import complete, go
from .test_rights import sign_in

SEEN = """what => {
    window.seen = [];
    const look = () => document.querySelectorAll(what).forEach(each => seen.push(each.textContent));
    const all = { subtree: true, childList: true, characterData: true };
    new MutationObserver(look).observe(document.body, all);
}"""
"""Keep the texts of what is found by a selector, however briefly it is there."""


class Held:
    """Requests of a page that do not reach the server until they are let go."""

    def __init__(self, page: Page, pattern: str) -> None:
        self._page = page
        self._held: list[Route] = []
        self._holds = True
        page.route(re.compile(pattern), self._meet)

    def _meet(self, route: Route) -> None:
        if self._holds:
            self._held.append(route)
        else:
            route.continue_()

    def wait(self) -> None:
        """Wait until there is one."""
        until(lambda: self._page.evaluate("1") and self._held)

    def let_go(self) -> None:
        """Let them go on, and all later ones. They may have been given up."""
        self._holds = False
        for route in self._held:
            route.continue_()

    def answer(self) -> None:
        """Let them go on, and all later ones. Returns when the page has got the answers."""
        self.let_go()
        for route in self._held:
            answer = route.request.response()
            assert answer is not None
            answer.finished()
        self._page.evaluate("new Promise(done => setTimeout(done))")


def test_a_list_is_not_complete_before_its_jobs_are_counted(place: Place, page: Page) -> None:
    push(place, 2, "counted")
    go(page, place)
    held = Held(page, "/preview")
    page.evaluate("location.hash = '#/jobs?f=queue%3Acounted'")
    expect(page.locator("main tbody tr[data-key]")).to_have_count(2)
    busy = page.locator("main [aria-busy]")
    expect(busy).to_have_count(1)
    cancel = page.get_by_role("button", name="Cancel all 2…")
    expect(cancel).to_have_count(0)
    held.answer()
    expect(busy).to_have_count(0)
    assert cancel.is_visible()


def test_rows_that_were_asked_for_before_the_list_was_loaded_anew_change_nothing(
    place: Place, page: Page
) -> None:
    push(place, 2, "renewed")
    go(page, place, "jobs?f=queue%3Arenewed")
    push(place, 1, "renewed")
    news = page.get_by_role("button", name="+1 new")
    expect(news).to_be_visible()
    held = Held(page, r"/jobs\?id=")
    held.wait()
    page.evaluate(SEEN, "main tbody .pill, main button")
    news.click()
    expect(page.locator("main tbody tr[data-key]")).to_have_count(3)
    expect(page.locator("[aria-busy]")).to_have_count(0)
    page.evaluate("seen.length = 0")
    held.answer()
    # The rows are asked for once more, which shows that what was let go is over.
    with page.expect_response(re.compile(r"/jobs\?id=")):
        pass
    assert not {"gone", "+1 new"} & set(page.evaluate("seen"))


def test_a_list_that_was_left_is_not_drawn_over_the_next_one(place: Place, page: Page) -> None:
    push(place, 2, "turned")
    go(page, place, "jobs?f=queue%3Aturned")
    rows = page.locator("main tbody tr[data-key]")
    newest = rows.first.get_attribute("data-key")
    held = Held(page, "order=asc.*search_ms|order=asc.*last_error")
    page.evaluate("location.hash += '&order=asc'")
    held.wait()
    page.go_back()
    complete(page, "/jobs?f=queue%3Aturned")
    page.evaluate(SEEN, "main .foot")
    held.answer()
    expect(rows.first).to_have_attribute("data-key", newest or "")
    assert not [text for text in page.evaluate("seen") if "oldest first" in text]


def test_a_part_that_comes_late_is_shown_though_a_row_of_another_one_is_pointed_at(
    place: Place, page: Page
) -> None:
    soon = round(time.time() * 1000) + 5_400_000
    jobs = [{"queue": "pointed", "type": "t", "payload": n, "ready_at": soon} for n in range(51)]
    post(place, "/jobs/bulk", {"jobs": jobs})
    held = Held(page, "/api/scheduled")
    page.goto(f"{place.ui}#/schedules")
    held.wait()
    late = page.get_by_role("region", name="Scheduled jobs", exact=True)
    expect(late.locator(".skeletons")).to_be_visible()
    page.get_by_role("table", name="Jobs that become ready").locator("tbody tr").hover()
    held.answer()
    expect(late.get_by_role("button", name="Later ones")).to_be_visible()


@pytest.fixture
def guarded(tmp_path: Path) -> Iterator[Place]:
    with serving(tmp_path / "data", "--keys", str(key_file(tmp_path / "keys"))) as place:
        yield place


def test_a_page_that_is_opened_while_the_session_ends_stays_away_from_the_form(
    guarded: Place, new_page: NewPage
) -> None:
    page = new_page()
    sign_in(page, guarded, "read")
    expect(page.locator("#live")).to_have_text("live")
    # The form is asked for when it is needed, and here it is not yet.
    page.reload()
    expect(page.locator("#live")).to_have_text("live")
    form, script = Held(page, "/signin.js"), Held(page, "/jobs.js")
    page.evaluate(
        """async () => {
            const token = localStorage.getItem(`token ${location.pathname}`);
            await fetch("session", { method: "DELETE", headers: { "Zq-Session": token } });
        }"""
    )
    form.wait()
    page.evaluate("location.hash = '#/jobs'")
    form.answer()
    expect(page.get_by_label("Access key")).to_be_visible()
    script.answer()
    assert httpx.get(f"{guarded.ui}api/jobs", trust_env=False).status_code == 401
    expect(page.locator("main h1")).to_have_text("Sign in")
    expect(page.locator("main table")).to_have_count(0)


def test_a_refusal_of_what_was_asked_for_before_somebody_signed_in_does_not_sign_them_out(
    guarded: Place, new_page: NewPage
) -> None:
    page = new_page()
    held = Held(page, "/ui/live")
    page.goto(guarded.ui)
    held.wait()
    page.get_by_label("Access key").fill("readread")
    page.get_by_role("button", name="Sign in").click()
    expect(page.locator("#main")).to_have_attribute("data-place", "")
    held.let_go()
    expect(page.locator("#live")).to_have_text("live")
    expect(page.locator("[aria-busy]")).to_have_count(0)
    expect(page.get_by_label("Access key")).to_have_count(0)
