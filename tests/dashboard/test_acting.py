"""What changes jobs, by the keyboard alone; and what the page says of a server that is silent."""

import re
import signal
from collections.abc import Iterator

import httpx
import pytest
from playwright.sync_api import Page, expect

from .place import Place, seed, serving
from .test_pages import go


def api(place: Place, path: str) -> dict[str, object]:
    reply = httpx.get(f"{place.primary}{path}", trust_env=False)
    document: dict[str, object] = reply.json()
    return document


def tab_to(page: Page, name: str) -> None:
    """Press Tab until the element with this name has the focus."""
    for _ in range(60):
        page.keyboard.press("Tab")
        text = page.evaluate("document.activeElement.textContent.trim()")
        if text == name:
            return
    raise AssertionError(f"no way to {name}")


def test_a_dead_job_is_found_and_retried_by_the_keyboard_alone(
    place: Place, ids: dict[str, str], page: Page
) -> None:
    go(page, place)
    page.keyboard.press("/")
    expect(page.locator("#filter")).to_be_focused()
    page.keyboard.type("status:dead queue:died")
    page.keyboard.press("Enter")
    expect(page.locator("main tbody tr")).to_have_count(3)
    page.keyboard.press("j")
    id = page.evaluate("document.activeElement.textContent")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Why")).to_be_visible()
    expect(page.get_by_role("region", name="Failures")).to_contain_text("by w-1: SmtpError")
    tab_to(page, "Requeue…")
    page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text(f"zq requeue {id}")
    expect(dialog).to_contain_text(f"curl -X POST {place.ui}api/jobs/{id}/requeue")
    tab_to(page, "Requeue")
    page.keyboard.press("Enter")
    expect(dialog).to_contain_text("The job is ready.")
    assert api(place, f"/jobs/{id}")["status"] == "ready"
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)


def test_groups_are_listed_with_what_they_wait_for_and_their_jobs(place: Place, page: Page) -> None:
    jobs = [
        {"queue": "ledger", "type": "book", "payload": n, "group": group}
        for group in ("acct 1", *(f"b{n:02}" for n in range(50)))
        for n in range(2)
    ]
    reply = httpx.post(f"{place.primary}/jobs/bulk", json={"jobs": jobs}, trust_env=False)
    first, second = (job["id"] for job in reply.json()["jobs"][:2])
    go(page, place, "queue?name=ledger&tab=Groups")
    rows = page.get_by_role("table", name="Groups with unfinished jobs").locator("tbody tr")
    expect(rows).to_have_count(50)
    expect(rows.first).to_contain_text(re.compile(f"acct 1.*{first}.*book.*ready"))
    rows.first.get_by_role("button", name="Show its jobs").click()
    expect(page.get_by_role("link", name=second)).to_be_visible()
    page.get_by_role("button", name="Next groups").click()
    expect(rows).to_have_count(1)
    expect(rows.first).to_contain_text("b49")
    page.get_by_role("button", name="First groups").click()
    expect(rows).to_have_count(50)


def test_pausing_a_queue_shows_at_once_where_it_is_looked_at(
    place: Place, ids: dict[str, str], page: Page
) -> None:
    go(page, place, "queue?name=mail")
    page.get_by_role("button", name="Pause…").click()
    page.get_by_label("Reason").fill("moving")
    page.get_by_label("Minutes").fill("90")
    expect(page.get_by_role("dialog")).to_contain_text("zq pause mail --for 90m --reason moving")
    page.get_by_role("dialog").get_by_role("button", name="Pause").click()
    expect(page.get_by_role("dialog")).to_contain_text("The queue is paused.")
    page.keyboard.press("Escape")
    expect(page.get_by_role("button", name="Resume…")).to_be_visible()
    settings = api(place, "/queues/mail/settings")
    assert settings["paused"] is True and settings["pause_reason"] == "moving"
    expect(page.locator("main")).to_contain_text("(moving)")


def test_deleting_more_than_a_hundred_jobs_needs_the_name_of_the_queue(
    place: Place, ids: dict[str, str], page: Page
) -> None:
    jobs = [{"queue": "many", "type": "t", "payload": n} for n in range(101)]
    httpx.post(f"{place.primary}/jobs/bulk", json={"jobs": jobs}, trust_env=False)
    go(page, place, "jobs?f=queue%3Amany")
    page.get_by_role("button", name="Delete all that match…").click()
    button = page.get_by_role("dialog").get_by_role("button", name="Delete 101 jobs")
    expect(button).to_be_disabled()
    page.get_by_label("Type many to go on").fill("man")
    expect(button).to_be_disabled()
    page.get_by_label("Type many to go on").fill("many")
    button.click()
    expect(page.get_by_role("dialog")).to_contain_text("101 jobs are deleted.")
    assert api(place, "/jobs/count?queue=many") == {"count": 0}


def test_a_row_keeps_its_element_while_others_change_around_it(
    place: Place, ids: dict[str, str], page: Page
) -> None:
    go(page, place)
    row = page.locator("main tr[data-key=mail]")
    row.locator("a").focus()
    row.evaluate("row => { row.mark = 1; }")
    before = page.locator("main tbody tr").count()
    for n in range(3):
        job = {"queue": f"new-{n}", "type": "t", "payload": 1}
        httpx.post(f"{place.primary}/jobs", json=job, trust_env=False)
    expect(page.locator("main tbody tr[data-key^=new-]")).to_have_count(3)
    assert page.locator("main tbody tr").count() >= before
    assert row.evaluate("row => row.mark") == 1
    assert row.locator("a").evaluate("link => link === document.activeElement")


@pytest.fixture
def own_place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    with serving(tmp_path_factory.mktemp("stale") / "data") as place:
        yield place


def test_a_silent_server_is_stale_after_five_seconds_and_recovers_without_a_reload(
    own_place: Place, page: Page
) -> None:
    seed(own_place.primary)
    go(page, own_place)
    own_place.process.send_signal(signal.SIGSTOP)
    expect(page.locator("#live")).to_have_text(re.compile("^stale"), timeout=8_000)
    expect(page.locator(".findings li").first).to_be_visible()
    own_place.process.send_signal(signal.SIGCONT)
    expect(page.locator("#live")).to_have_text("live")
