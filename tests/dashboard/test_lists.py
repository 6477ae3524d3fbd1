"""The list of jobs: what is new, what is selected, how the line goes on, and what is kept."""

import os
import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import quote

import httpx
from playwright.sync_api import Page, Route, expect

from .place import Place
from .test_acting import api
from .test_pages import go
from .test_sweep_dialogs import command


def push(place: Place, count: int, queue: str) -> None:
    for n in range(count):
        job = {"queue": queue, "type": "t", "payload": n}
        assert httpx.post(f"{place.primary}/jobs", json=job, trust_env=False).status_code == 201


def ids_on(page: Page) -> list[str]:
    return page.locator("main tbody th a").all_text_contents()


def test_no_row_moves_until_somebody_asks_for_what_is_new(
    place: Place, ids: dict[str, str], page: Page
) -> None:
    push(place, 2, "growing")
    go(page, place, "jobs?f=queue%3Agrowing")
    before = ids_on(page)
    push(place, 3, "growing")
    push(place, 1, "elsewhere")
    button = page.get_by_role("button", name="+3 new")
    expect(button).to_be_visible()
    assert ids_on(page) == before
    button.click()
    expect(page.locator("main tbody tr")).to_have_count(5)
    assert ids_on(page)[3:] == before
    expect(button).to_have_count(0)


def test_selected_jobs_are_retried_by_keys_and_no_other_one(
    place: Place, ids: dict[str, str], page: Page
) -> None:
    go(page, place, "jobs?f=status%3Adead%20queue%3Adied")
    one, two, three = ids_on(page)
    for key in "jxjx":
        page.keyboard.press(key)
    expect(page.get_by_text("2 selected")).to_be_visible()
    page.keyboard.press("r")
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("Requeue 2 dead jobs")
    page.keyboard.press("x")
    dialog.get_by_role("button", name="Requeue 2 jobs").click()
    expect(dialog).to_contain_text("2 jobs are ready again.")
    assert [api(place, f"/jobs/{id}")["status"] for id in (one, two, three)] == [
        "ready",
        "ready",
        "dead",
    ]


def test_the_line_goes_on_with_what_there_is(place: Place, ids: dict[str, str], page: Page) -> None:
    go(page, place, "jobs")
    words = page.locator("#words option")
    for line, going_on in (
        ("st", ["status:"]),
        ("queue:mail status:de", ["queue:mail status:dead"]),
        ("status:dead queue:die", ["status:dead queue:died"]),
        ("type:od", ["type:odd"]),
        ("queue:none-such", []),
    ):
        page.locator("#filter").fill(line)
        for value in going_on:
            expect(page.locator(f'#words option[value="{value}"]')).to_have_count(1)
        expect(words).to_have_count(len(going_on))


def test_a_view_is_kept_by_name_and_forgotten(
    place: Place, ids: dict[str, str], page: Page
) -> None:
    go(page, place, "jobs?f=status%3Adead%20queue%3Adied")
    page.get_by_text("Saved views").click()
    page.get_by_label("Name of this view").fill("dead mail")
    page.get_by_role("button", name="Save").click()
    go(page, place, "jobs")
    page.get_by_text("Saved views").click()
    page.get_by_role("link", name="dead mail").click()
    expect(page.locator("#filter")).to_have_value("status:dead queue:died")
    page.get_by_text("Saved views").click()
    page.get_by_role("button", name="Forget dead mail").click()
    expect(page.get_by_role("link", name="dead mail")).to_have_count(0)


def test_the_next_day_is_shown_by_the_hour(place: Place, ids: dict[str, str], page: Page) -> None:
    now = page.evaluate("Date.now()")
    for minutes in (90, 100, 200):
        job = {"queue": "soon", "type": "t", "payload": 1, "ready_at": now + minutes * 60_000}
        httpx.post(f"{place.primary}/jobs", json=job, trust_env=False)
    go(page, place, "schedules")
    rows = page.locator("table", has_text="Jobs that become ready").locator("tbody tr")
    expect(rows).to_have_count(2)
    assert [row.locator("td").first.text_content() for row in rows.all()] == ["2", "1"]
    assert rows.first.locator("meter").get_attribute("value") == "2"


def test_an_entry_of_cron_is_paused_and_run_from_the_page(
    place: Place, ids: dict[str, str], page: Page
) -> None:
    go(page, place, "schedules")
    dialog = page.get_by_role("dialog")
    page.get_by_role("button", name="Pause…").click()
    assert command(page) == ["cron", "pause", "nightly", "report"]
    dialog.get_by_role("button", name="Pause").click()
    expect(dialog).to_contain_text("The entry is paused.")
    page.keyboard.press("Escape")
    expect(page.get_by_role("button", name="Resume…")).to_be_visible()
    assert api(place, "/crons/nightly/entries/report")["paused"] is True
    page.get_by_role("button", name="Run now…").click()
    line = dialog.locator("code").first.inner_text()
    assert line.endswith(f" | zq push --file - --url {place.primary}")
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = os.environ | {"PATH": path}
    subprocess.run(("sh", "-c", line), env=environment, check=True)
    assert api(place, "/jobs/count?type=report") == {"count": 1}
    dialog.get_by_role("button", name="Run now").click()
    expect(dialog).to_contain_text(re.compile("The job .* is stored."))
    assert api(place, "/jobs/count?type=report") == {"count": 2}


def test_a_search_for_a_payload_goes_on_as_far_as_somebody_wants(place: Place, page: Page) -> None:
    push(place, 1, "needle")
    for _ in range(3):
        jobs = [{"queue": "hay", "type": "t", "payload": {"user": 7}}] * 1_000
        httpx.post(f"{place.primary}/jobs/bulk", json={"jobs": jobs}, trust_env=False)
    # Nobody waits for a second until a search is cut short.

    def hurry(route: Route) -> None:
        route.continue_(url=route.request.url.replace("search_ms=1000", "search_ms=0"))

    page.route(re.compile("search_ms="), hurry)
    page.goto(f"{place.ui}#/jobs?f={quote('type:t payload:. == 0')}")
    status = page.get_by_role("status").filter(has_text="Searched back to")
    expect(status).to_contain_text(re.compile(r"\d\d:\d\d:\d\d .*, 0 found\."))
    while not ids_on(page):
        page.get_by_role("button", name="Search on").click()
        expect(page.locator("main [aria-busy]")).to_have_count(0)
    expect(page.locator("main tbody tr").first).to_contain_text("needle")
