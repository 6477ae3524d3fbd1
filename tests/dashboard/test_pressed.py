"""What somebody presses, has in focus or reads stays as it is while the page is drawn anew."""

import re
from collections.abc import Iterator
from urllib.parse import quote

import httpx
import pytest
from playwright.sync_api import Locator, Page, Route, expect

from .place import Place, serving, until
from .test_acting import dying
from .test_lists import ids_on, push
from .test_operating import pause
from .test_pages import complete, go


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    with serving(tmp_path_factory.mktemp("pressed") / "data") as place:
        yield place


@pytest.fixture
def page(same_page: Page) -> Page:
    """One page for all of this file."""
    return same_page


def cancel(place: Place, id: str) -> None:
    assert httpx.post(f"{place.primary}/jobs/{id}/cancel", json={}, trust_env=False).is_success


def hold(page: Page, button: Locator) -> None:
    """Press a button, and do not release it."""
    button.hover()
    page.mouse.down()


def test_a_verb_stays_while_one_before_it_comes_or_goes(place: Place, page: Page) -> None:
    push(place, 1, "verbs")
    go(page, place, "jobs?f=queue%3Averbs")
    (id,) = ids_on(page)
    row = page.locator("main tbody tr")
    hold(page, row.get_by_role("button", name="More for"))
    cancel(place, id)
    expect(row.get_by_role("button", name="Cancel")).to_have_count(0)
    page.mouse.up()
    expect(page.locator(".menu")).to_be_visible()
    push(place, 1, "verbs")
    go(page, place, "jobs?f=queue%3Averbs%20status%3Aready")
    row.get_by_role("link").first.click()
    panel = page.get_by_role("complementary")
    # It moves to the left, so that a pointer would not be over it any more.
    delete = panel.get_by_role("button", name="Delete…")
    delete.focus()
    cancel(place, *ids_on(page))
    expect(panel.get_by_role("button", name="Move…")).to_have_count(0)
    expect(delete).to_be_focused()


def test_what_stands_behind_a_figure_or_a_state_stays_when_that_changes(
    place: Place, page: Page
) -> None:
    go(page, place, "queue?name=begins")
    running = page.locator(".tile[data-key=Running]")
    running.focus()
    push(place, 1, "begins")
    expect(page.locator("a.tile[data-key=Oldest]")).to_be_visible()
    expect(running).to_be_focused()
    go(page, place, "queue?name=begins-too")
    hold(page, page.get_by_role("button", name="More for begins-too"))
    push(place, 1, "begins-too")
    expect(page.locator("main .bar .pill").first).to_be_visible()
    page.mouse.up()
    expect(page.locator(".menu")).to_be_visible()


def test_why_jobs_wait_stays_in_its_place_when_none_waits(place: Place, page: Page) -> None:
    push(place, 1, "keeps-up")
    go(page, place, "queue?name=keeps-up")
    why = page.get_by_role("region", name="Why its jobs wait")
    expect(why).to_be_visible()
    cancel(place, *ids_on(page))
    expect(why).to_contain_text("No job waits.")


def test_a_line_is_copied_by_the_press_that_leaves_a_field(place: Place, page: Page) -> None:
    push(place, 2, "copied")
    go(page, place, "jobs?f=queue%3Acopied")
    page.get_by_role("button", name="Cancel all 2…").click()
    dialog = page.get_by_role("dialog")
    dialog.locator("summary").click()
    dialog.get_by_label("Reason").click()
    page.keyboard.type("a test")
    dialog.get_by_role("button", name="Copy the line of zq").click()
    expect(page.locator(".toast")).to_be_visible()
    expect(dialog.get_by_role("group", name="zq")).to_contain_text("--reason 'a test'")


def test_a_cause_and_its_sample_keep_the_focus_while_they_are_asked_for(
    place: Place, page: Page
) -> None:
    dying(place, "sampled", "one of a kind")
    go(page, place, "failures?queue=sampled")
    sample = page.get_by_role("group", name="Sample of the cause")
    row = page.locator("main tbody tr th a", has_text="one of a kind")
    expect(sample).to_contain_text("one of a kind")
    row.focus()
    sample.evaluate("each => getSelection().selectAllChildren(each)")
    # What the first one says is drawn before the second one is asked for.
    for _ in range(2):
        with page.expect_response(re.compile("/api/failures")):
            pass
    expect(row).to_be_focused()
    assert "one of a kind" in page.evaluate("getSelection().toString()")
    page.get_by_role("button", name="Requeue the dead jobs of the cause that is open").focus()
    dying(place, "sampled", "one of a kind")
    card = page.get_by_role("region", name="The cause that is chosen")
    expect(card.get_by_role("button", name="Requeue the dead")).to_have_text("Requeue 4…")
    expect(card.get_by_role("button", name="Requeue the dead")).to_be_focused()


def test_the_jobs_of_a_cause_are_requeued_though_one_more_dies_meanwhile(
    place: Place, page: Page
) -> None:
    dying(place, "dies", "out of paper")
    go(page, place)
    row = page.locator("main tr", has_text="out of paper")
    hold(page, row.get_by_role("button", name="Requeue the dead jobs of out of paper"))
    dying(place, "dies", "out of paper")
    expect(row.locator("td.num")).to_have_text("4")
    page.mouse.up()
    expect(page.get_by_role("dialog")).to_contain_text("Requeue 4 jobs")


def test_what_is_ticked_in_a_search_is_shown_at_once_and_cleared_by_escape(
    place: Place, page: Page
) -> None:
    push(place, 1, "needle")
    for _ in range(3):
        jobs = [{"queue": "hay", "type": "t", "payload": {"user": 7}}] * 1_000
        httpx.post(f"{place.primary}/jobs/bulk", json={"jobs": jobs}, trust_env=False)
    push(place, 1, "needle")

    def hurry(route: Route) -> None:
        route.continue_(url=route.request.url.replace("search_ms=1000", "search_ms=0"))

    page.route(re.compile("search_ms="), hurry)
    to = f"/jobs?f={quote('queue:needle,hay payload:. == 0')}"
    page.goto(f"{place.ui}#{to}")
    complete(page, to)
    expect(page.locator(".banner", has_text="Searched back to")).to_be_visible()
    row = page.locator("main tbody tr[data-key]").first
    row.get_by_role("checkbox").click()
    bar = page.get_by_role("region", name="Selection")
    expect(bar).to_contain_text("1 selected")
    page.keyboard.press("Escape")
    expect(bar).to_have_count(0)
    expect(row.get_by_role("checkbox")).not_to_be_checked()


def test_an_open_job_changes_while_the_pointer_rests_on_a_row(place: Place, page: Page) -> None:
    push(place, 2, "rested")
    go(page, place, "jobs?f=queue%3Arested")
    rows = page.locator("main tbody tr")
    rows.first.get_by_role("link").first.click()
    panel = page.get_by_role("complementary")
    expect(panel.locator("header .pill")).to_have_text("ready")
    rows.last.hover()
    cancel(place, ids_on(page)[0])
    expect(panel.locator("header .pill")).to_have_text("cancelled")
    expect(panel.get_by_role("button", name="Cancel", exact=True)).to_have_count(0)


def test_an_age_keeps_its_time_in_its_title(place: Place, page: Page) -> None:
    push(place, 1, "aged")
    go(page, place, "jobs?f=queue%3Aaged")
    age = page.locator("main tbody tr time")
    age.hover()
    title = age.get_attribute("title")
    before = age.inner_text()
    expect(age).not_to_have_text(before)
    assert title is not None
    assert age.get_attribute("title") == title


def test_what_was_folded_again_stays_so_when_an_answer_comes_late(place: Place, page: Page) -> None:
    pause(place, [f"folded-{n}" for n in range(5)])
    go(page, place)
    line = page.locator(".findings li[data-code=paused]")
    held: list[Route] = []
    line.get_by_role("button", name="more of paused").click()
    expect(line.locator(".unfolded")).to_be_visible()
    page.route("**/look?topic=findings*", lambda route: held.append(route))
    until(lambda: page.evaluate("1") and held)
    line.get_by_role("button", name="fewer of paused").click()
    expect(line.locator(".unfolded")).to_have_count(0)
    with page.expect_response("**/look?topic=findings*") as answered:
        held[0].continue_()
    answered.value.finished()
    page.evaluate("new Promise(done => setTimeout(done, 200))")
    expect(line.locator(".unfolded")).to_have_count(0)


def test_a_failure_pushes_no_row_away_from_the_pointer(place: Place, page: Page) -> None:
    policy = {"allocation": 2, "strategy": {"type": "while_in_flight"}}
    httpx.put(f"{place.primary}/budgets/pressed", json=policy, trust_env=False)
    go(page, place, "queues?tab=budgets")
    row = page.locator("main tr[data-key=pressed]")
    row.hover()
    before = row.bounding_box()
    page.route("**/api/budgets", lambda route: route.abort())
    page.wait_for_event("requestfailed", lambda each: each.url.endswith("/api/budgets"))
    page.evaluate("new Promise(done => setTimeout(done, 200))")
    assert row.bounding_box() == before
    page.mouse.move(1, 1)
    expect(page.locator("main").get_by_role("alert")).to_contain_text("cannot be asked for")
