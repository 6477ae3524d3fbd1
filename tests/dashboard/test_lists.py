"""The list of jobs: what is new, what is ticked, how the line goes on, and what is kept."""

import os
import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import quote, urlsplit

import httpx
import pytest
from axe_playwright_python.base import AXE_SCRIPT
from playwright.sync_api import Locator, Page, Route, expect

from .conftest import NewPage
from .place import Place
from .test_acting import api, toast
from .test_pages import complete, faults, go
from .test_sweep_dialogs import command


@pytest.fixture
def page(same_page: Page) -> Page:
    """One page for all of this file."""
    return same_page


def push(place: Place, count: int, queue: str) -> None:
    for n in range(count):
        job = {"queue": queue, "type": "t", "payload": n}
        assert httpx.post(f"{place.primary}/jobs", json=job, trust_env=False).status_code == 201


def ids_on(page: Page) -> list[str]:
    rows = page.locator("main tbody tr[data-key]")
    found: list[str] = rows.evaluate_all("rows => rows.map(row => row.dataset.key)")
    return found


# The line


LINES: list[tuple[str, dict[str, str] | tuple[int, int, str]]] = [
    ("", {}),
    ("status:dead queue:mail", {"status": "dead", "queue": "mail"}),
    ('type:"two words" attempts:2..', {"type": "two words", "attempts": "2.."}),
    ("attempts:>2 priority:<1", {"attempts": "3..", "priority": "..0"}),
    ("budget:api cause:1-9f", {"budgets.key": "api", "error": "1-9f"}),
    ("status:completed,ready,dead", {"status": "completed,ready,dead"}),
    ("age:>1h", {"ready_at": "..6400000"}),
    ("age:<10m", {"ready_at": "9400000.."}),
    ("age:>30s age:<1h", {"ready_at": "6400000..9970000"}),
    ("since:1h until:10m", {"ready_at": "6400000..9400000"}),
    ("since:1970-01-01T01:00", {"ready_at": "3600000.."}),
    ("since:yesterday until:today", {"ready_at": "-86400000..0"}),
    (
        'status:ready payload:.user == 7 and .to == "a b"',
        {"status": "ready", "filter": '.user == 7 and .to == "a b"'},
    ),
    ("payload.user:7", {"filter": '(.["user"]? | tostring) == "7"'}),
    ('payload.to.name:"a b"', {"filter": '(.["to"]?["name"]? | tostring) == "a b"'}),
    ("01KX4Q7M0G6ZB3T9V5Y2W8H1CD", {"id": "01KX4Q7M0G6ZB3T9V5Y2W8H1CD"}),
    ("smtp timeout", {"search": "smtp timeout"}),
    (r'queue:"a\"b" type:"say \"hi\""', {"queue": 'a"b', "type": 'say "hi"'}),
    ('queue:mail "smtp timeout" ann', {"queue": "mail", "search": '"smtp timeout" ann'}),
    ('status:ready queue:""', (13, 21, "queue is empty")),
    ("queue: status:dead", (0, 6, "queue is empty")),
    (
        "queue:a queue:b",
        (8, 15, "queue is written twice: for several,"),
    ),
    ("queue:a,,b", (0, 10, "empty part")),
    ("age:>1h age:>2h", (8, 15, "age:> is written twice")),
    ("age:>1h age:<30s", (8, 16, "No job is in this time")),
    ("age:old", (0, 7, "age is written as")),
    ("since:soon", (0, 10, "since is written as")),
    ("colour:red", (0, 10, "There is no colour")),
    ("status:ded", (0, 10, "There is no status “ded”")),
    ("attempts:<0", (0, 11, "attempts is a whole number")),
    ("priority:9..3", (0, 13, "No number is from 9 to 3")),
    ("id:17", (0, 5, "no id")),
    ('queue:"mail', (0, 11, "not closed")),
    (r'queue:"mail\"', (0, 13, "not closed")),
    ('""', (0, 2, "Nothing stands")),
]
"""What a line means; or from where to where it is marked, and what is said of it."""


def test_a_filter_line_means_what_its_terms_say(place: Place, page: Page) -> None:
    page.goto(place.ui)
    source = page.locator("script[src*=main]").evaluate("s => s.src.replace('main', 'filter')")
    answers = page.evaluate(
        """async ([source, lines]) => {
            localStorage.setItem("zone", "UTC");
            const { parseFilter } = await import(source);
            return lines.map((line) => {
                try { return parseFilter(line, 10000000); } catch (error) {
                    return [error.from, error.to, error.message];
                }
            });
        }""",
        [source, [line for line, _ in LINES]],
    )
    for (line, expected), found in zip(LINES, answers, strict=True):
        if isinstance(expected, tuple):
            assert found[:2] == list(expected[:2]), line
            assert expected[2] in found[2], line
        else:
            assert found == expected, line


@pytest.mark.parametrize(
    ("line", "marked"), [('queue:""', 'queue:""'), ("queue:died queue:mail", "queue:mail")]
)
def test_a_line_that_cannot_be_read_lists_nothing_and_offers_nothing(
    place: Place, ids: dict[str, str], page: Page, line: str, marked: str
) -> None:
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    go(page, place, f"jobs?f={quote(line)}")
    expect(page.get_by_role("alert")).to_contain_text("queue is")
    expect(page.locator("main mark")).to_have_text(marked)
    expect(page.get_by_text("Nothing is listed")).to_be_visible()
    expect(page.locator("#filter")).to_have_attribute("aria-invalid", "true")
    expect(page.locator("main [data-scope]")).to_have_count(0)
    assert not [url for url in asked if "/api/jobs" in url or "/preview" in url]
    # What is typed is looked at before it becomes an address, and the place is selected.
    page.locator("#filter").fill(f"status:dead {line}")
    page.keyboard.press("Enter")
    expect(page.locator("main mark")).to_have_text(marked)
    assert page.evaluate("document.getSelection().toString()") == marked
    page.locator("#filter").fill("status:dead queue:died")
    page.keyboard.press("Enter")
    expect(page.locator("main tbody tr")).to_have_count(3)


def test_a_chip_writes_into_the_line_and_follows_it(
    place: Place, ids: dict[str, str], page: Page
) -> None:
    go(page, place, "jobs?f=queue%3Adied")
    chips = page.get_by_role("group", name="Status")
    chip = chips.get_by_role("button", name=re.compile("^dead"))
    expect(chip).to_have_attribute("aria-pressed", "false")
    chip.click()
    expect(page.locator("#filter")).to_have_value("queue:died status:dead")
    expect(chip).to_have_attribute("aria-pressed", "true")
    chips.get_by_role("button", name=re.compile("^ready")).click()
    expect(page.locator("#filter")).to_have_value("queue:died status:dead,ready")
    chip.click()
    expect(page.locator("#filter")).to_have_value("queue:died status:ready")


def test_a_button_does_its_work_though_its_number_changes_while_it_is_pressed(
    place: Place, page: Page
) -> None:
    def press(button: Locator) -> None:
        button.hover()
        page.mouse.down()
        before = button.inner_text()
        push(place, 1, "pressed")
        expect(button).not_to_have_text(before)
        page.mouse.up()

    push(place, 1, "pressed")
    go(page, place, "jobs?f=queue%3Apressed")
    press(page.get_by_role("button", name=re.compile("^ready")))
    expect(page.locator("#filter")).to_have_value("queue:pressed status:ready")
    expect(page.locator("main tbody tr")).to_have_count(2)
    push(place, 1, "pressed")
    press(page.get_by_role("button", name=re.compile("new$")))
    expect(page.locator("main tbody tr")).to_have_count(4)
    press(page.get_by_role("button", name=re.compile("^Delete all")))
    expect(page.get_by_role("dialog")).to_be_visible()


def test_a_view_is_kept_by_name_and_forgotten(
    place: Place, ids: dict[str, str], page: Page
) -> None:
    go(page, place, "jobs?f=status%3Adead%20queue%3Adied")
    page.get_by_role("button", name="Saved views").click()
    dialog = page.get_by_role("dialog")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(dialog.get_by_role("alert")).to_contain_text("A view needs a name")
    page.get_by_label("Name of this view").fill("dead mail")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_role("dialog")).to_have_count(0)
    go(page, place, "jobs")
    page.get_by_role("button", name="Saved views").click()
    page.get_by_role("link", name="dead mail").click()
    expect(page.locator("#filter")).to_have_value("status:dead queue:died")
    page.get_by_role("button", name="Saved views").click()
    page.get_by_role("button", name="Forget dead mail").click()
    expect(page.get_by_role("link", name="dead mail")).to_have_count(0)


# The list


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


def test_a_row_tells_what_the_job_carries_and_keeps_its_place_while_it_changes(
    place: Place, page: Page
) -> None:
    text = '{"queue": "telling", "type": "t", "payload": {"user": 9007199254740993, "a": "\u202e"}}'
    headers = {"Content-Type": "application/json"}
    for _ in range(2):
        httpx.post(f"{place.primary}/jobs", content=text, headers=headers, trust_env=False)
    go(page, place, "jobs?f=queue%3Atelling")
    row = page.locator("main tbody tr").first
    expect(row).to_contain_text('{"user": 9007199254740993, "a": "\\u202e"}')
    expect(row.locator("time")).to_have_text(re.compile(r"^[\d.]+ (ms|s|m)$"))
    expect(row.get_by_role("button", name=re.compile("^Copy id …"))).to_be_visible()
    # The column that the filter fixes is left out.
    expect(page.get_by_role("columnheader", name="queue")).to_have_count(0)
    id, other = ids_on(page)
    httpx.post(f"{place.primary}/jobs/{id}/cancel", json={}, trust_env=False)
    httpx.delete(f"{place.primary}/jobs/{other}", trust_env=False)
    expect(row.locator(".pill")).to_have_text("cancelled")
    expect(page.locator("main tbody tr").nth(1)).to_contain_text("gone")
    assert ids_on(page) == [id, other]


def test_a_list_whose_last_rows_are_deleted_says_so(place: Place, page: Page) -> None:
    push(place, 1, "emptied")
    go(page, place, "jobs?f=queue%3Aemptied")
    (id,) = ids_on(page)
    httpx.delete(f"{place.primary}/jobs/{id}", trust_env=False)
    expect(page.locator("main tbody tr")).to_contain_text("gone")
    assert ids_on(page) == [id]


def test_a_list_that_could_not_be_loaded_is_never_an_empty_one(place: Place, page: Page) -> None:
    push(place, 2, "failing")
    failing = True

    def refuse(route: Route) -> None:
        if failing and "/api/jobs?" in route.request.url:
            route.fulfill(status=503, json={"error": "busy for a test"})
        else:
            route.fallback()

    page.route("**/api/jobs?*", refuse)
    page.goto(f"{place.ui}#/jobs?f=queue%3Afailing")
    said = page.get_by_text("This list cannot be shown.")
    expect(said).to_be_visible()
    # It is asked for again, and what it says stays until there is an answer.
    for _ in range(2):
        with page.expect_request("**/api/jobs?*"):
            pass
        expect(page.get_by_text("No job matches")).to_have_count(0)
    failing = False
    expect(page.locator("main tbody tr")).to_have_count(2)
    expect(said).to_have_count(0)


def test_newer_leads_to_the_page_before_from_wherever_somebody_came(
    place: Place, page: Page
) -> None:
    jobs = [{"queue": "turned", "type": "t", "payload": n} for n in range(160)]
    httpx.post(f"{place.primary}/jobs/bulk", json={"jobs": jobs}, trust_env=False)
    go(page, place, "jobs?f=queue%3Aturned")
    foot = page.locator(".foot")
    seen: list[list[str]] = []
    for first in (1, 51, 101):
        expect(foot).to_contain_text(f"{first}\N{EN DASH}{first + 49} of 160")
        seen.append(ids_on(page))
        page.get_by_role("button", name="Older").click()
    expect(foot).to_contain_text("151\N{EN DASH}160 of 160")
    # Who was sent the address has been nowhere else, and an open job is a place of its own.
    shared = page.url
    page.goto("about:blank")
    page.goto(shared)
    page.locator("main tbody th a").first.click()
    expect(page.locator(".panel")).to_be_visible()
    for first, ids in zip((101, 51, 1), reversed(seen), strict=True):
        page.get_by_role("button", name="Newer").click()
        expect(foot).to_contain_text(f"{first}\N{EN DASH}{first + 49} of 160")
        assert ids_on(page) == ids
    expect(page.get_by_role("button", name="Newer")).to_be_disabled()


def test_a_name_with_a_quotation_mark_means_no_other_queue(place: Place, page: Page) -> None:
    push(place, 1, 'quo"ted')
    push(place, 2, "quoted")
    go(page, place, "queue?name=quo%22ted&tab=jobs")
    page.locator("main tbody th a").first.click()
    complete(page, urlsplit(page.url).fragment)
    expect(page.locator("#filter")).to_have_value(r'queue:"quo\"ted"')
    expect(page.locator("main tbody tr")).to_have_count(1)


def test_the_place_is_kept_in_the_address_and_on_the_way_back(place: Place, page: Page) -> None:
    jobs = [{"queue": "long", "type": f"t{n % 7}", "payload": n} for n in range(120)]
    httpx.post(f"{place.primary}/jobs/bulk", json={"jobs": jobs}, trust_env=False)
    go(page, place, "jobs?f=queue%3Along")
    expect(page.locator(".foot")).to_contain_text("1\N{EN DASH}50 of 120, the newest first")
    page.get_by_role("button", name="Older").click()
    expect(page.locator(".foot")).to_contain_text("51\N{EN DASH}100 of 120")
    second = ids_on(page)
    page.locator("main tbody th a").nth(3).click()
    panel = page.locator(".panel")
    expect(panel).to_be_visible()
    expect(page.locator("tr.here")).to_have_attribute("data-key", second[3])
    assert ids_on(page) == second
    page.reload()
    expect(page.locator("tr.here")).to_have_attribute("data-key", second[3])
    expect(page.locator(".foot")).to_contain_text("51\N{EN DASH}100 of 120")
    page.get_by_role("button", name="Job after (j)").click()
    expect(page.locator("tr.here")).to_have_attribute("data-key", second[4])
    page.keyboard.press("Escape")
    expect(panel).to_have_count(0)
    page.go_back()
    expect(panel).to_be_visible()
    page.go_back()
    expect(panel).to_have_count(0)
    page.go_back()
    expect(page.locator(".foot")).to_contain_text("1\N{EN DASH}50 of 120")
    page.get_by_role("columnheader", name="type").get_by_role("button").click()
    expect(page.locator(".foot")).to_contain_text("only the 50 shown are sorted by type")
    types = page.locator("main tbody th").all_inner_texts()
    assert types == sorted(types, reverse=True)
    page.get_by_role("columnheader", name="age").get_by_role("button").click()
    expect(page.locator(".foot")).to_contain_text("the oldest first")
    expect(page.locator("main tbody tr").first).to_contain_text("t0")


def test_one_bar_acts_on_what_is_ticked_and_no_two_buttons_are_called_alike(
    place: Place, ids: dict[str, str], page: Page
) -> None:
    push(place, 60, "ticked")
    go(page, place, "jobs?f=queue%3Aticked%20status%3Aready")
    boxes = page.locator("main tbody input[type=checkbox]")
    boxes.nth(1).check()
    boxes.nth(3).click(modifiers=["Shift"])
    bar = page.get_by_role("region", name="Selection")
    expect(bar).to_contain_text("3 selected of 60")
    expect(bar.get_by_role("button", name="Cancel 3…")).to_be_visible()
    labels = page.locator("main button:visible").evaluate_all(
        "all => all.map(each => each.getAttribute('aria-label') ?? each.textContent)"
    )
    assert len(labels) == len(set(labels)), sorted(labels)
    bar.get_by_role("button", name="Select all 60 that match").click()
    expect(bar).to_contain_text("All 60 that match, up to …")
    push(place, 1, "ticked")
    bar.get_by_role("button", name="Cancel 60…").click()
    page.get_by_role("dialog").get_by_role("button", name="Cancel 60 jobs").click()
    assert toast(page) == "60 jobs of ticked are cancelled."
    assert api(place, "/jobs/count?queue=ticked&status=ready") == {"count": 1}
    expect(bar).to_have_count(0)


def test_selected_jobs_are_retried_by_keys_and_no_other_one(
    place: Place, ids: dict[str, str], page: Page
) -> None:
    go(page, place, "jobs?f=status%3Adead%20queue%3Adied")
    one, two, three = ids_on(page)
    for key in "jxjx":
        page.keyboard.press(key)
    expect(page.get_by_text("2 selected of 3")).to_be_visible()
    page.keyboard.press("r")
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("Requeue 2 jobs")
    page.keyboard.press("x")
    dialog.get_by_role("button", name="Requeue 2 jobs").click()
    assert toast(page) == "2 jobs are ready again."
    assert [api(place, f"/jobs/{id}")["status"] for id in (one, two, three)] == [
        "ready",
        "ready",
        "dead",
    ]


def test_a_value_of_a_payload_is_found_without_a_program(place: Place, page: Page) -> None:
    for user, text in ((7, "red shoes"), ("7", "blue shoes"), (70, "red hat")):
        payload = {"user": user, "note": text}
        job = {"queue": "shop", "type": "order", "payload": payload}
        assert httpx.post(f"{place.primary}/jobs", json=job, trust_env=False).is_success
    rows = page.locator("main tbody tr[data-key]")
    for line, found in (
        ("queue:shop payload.user:7", ["blue shoes", "red shoes"]),
        ("queue:shop shoes red", ["red shoes"]),
        ('queue:shop "red hat"', ["red hat"]),
    ):
        go(page, place, f"jobs?f={quote(line)}")
        expect(rows).to_have_count(len(found))
        for row, text in zip(rows.all(), found, strict=True):
            expect(row).to_contain_text(text)
        expect(page.get_by_role("button", name=f"Cancel all {len(found)}…")).to_be_visible()
    box = page.locator("#filter")
    for typed, going_on in (
        ("queue:sho", "queue:shop"),
        ("queue:shop payload.us", "queue:shop payload.user:"),
        ("status:de", "status:dead"),
        ("type:ord", "type:order"),
    ):
        box.fill(typed)
        expect(page.locator(f'#words option[value="{going_on}"]')).to_have_count(1)


def test_a_list_with_an_open_job_a_selection_and_a_dialog_has_no_fault_of_access(
    place: Place, ids: dict[str, str], new_page: NewPage
) -> None:
    # More than one hundred: the list has a second page to offer, and its deletion asks for a word.
    jobs = [{"queue": "seen", "type": "t", "payload": n} for n in range(120)]
    httpx.post(f"{place.primary}/jobs/bulk", json={"jobs": jobs}, trust_env=False)
    page = new_page(reduced_motion="reduce")
    page.goto(place.ui)
    page.evaluate(AXE_SCRIPT)
    page.set_viewport_size({"width": 1440, "height": 900})
    go(page, place, "jobs?f=queue%3Aseen")
    page.locator("main tbody th a").first.click()
    expect(page.get_by_role("complementary")).to_be_visible()
    page.locator("main tbody input").nth(1).check()
    expect(page.get_by_role("region", name="Selection")).to_be_attached()
    # The rows are alike, and those that are away stay so while the page is not drawn anew.
    page.keyboard.press("p")
    page.evaluate(
        "document.querySelectorAll('main tbody tr:nth-child(n+6)').forEach(e => e.remove())"
    )
    widths = (1440, 1024, 390)
    assert faults(page, widths) == []
    delete = page.get_by_role("button", name="Delete all 1", include_hidden=True)
    delete.first.evaluate("button => button.click()")
    expect(page.get_by_role("dialog")).to_be_visible()
    page.locator("dialog summary").click()
    # Nothing else can be reached while it is open.
    assert faults(page, widths, "dialog") == []


# Other pages with lists


def test_the_next_day_is_shown_by_the_hour(place: Place, ids: dict[str, str], page: Page) -> None:
    now = page.evaluate("Date.now()")
    for minutes in (90, 100, 200):
        job = {"queue": "soon", "type": "t", "payload": 1, "ready_at": now + minutes * 60_000}
        httpx.post(f"{place.primary}/jobs", json=job, trust_env=False)
    go(page, place, "schedules")
    rows = page.locator("table", has_text="Jobs that become ready").locator("tbody tr")
    expect(rows).to_have_count(2)
    expect(rows.locator("td.num:nth-of-type(2)")).to_have_text(["2", "1"])
    expect(rows.first.get_by_role("img", name="2 of 2")).to_be_attached()


def test_an_entry_of_cron_is_paused_and_run_from_the_page(
    place: Place, ids: dict[str, str], page: Page
) -> None:
    go(page, place, "schedules")
    dialog = page.get_by_role("dialog")
    page.get_by_role("button", name="Pause nightly / report").click()
    assert command(page) == ["cron", "pause", "nightly", "report"]
    dialog.get_by_role("button", name="Pause").click()
    assert toast(page) == "nightly / report is paused."
    expect(page.get_by_role("button", name="Resume nightly / report")).to_be_visible()
    assert api(place, "/crons/nightly/entries/report")["paused"] is True
    page.get_by_role("button", name="More for nightly / report").click()
    page.locator(".menu").get_by_role("button", name="Run now…").click()
    line = dialog.locator("code").first.text_content() or ""
    assert line.endswith(f" | zq push --file - --url {place.primary}")
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = os.environ | {"PATH": path}
    subprocess.run(("sh", "-c", line), env=environment, check=True)
    assert api(place, "/jobs/count?type=report") == {"count": 1}
    dialog.get_by_role("button", name="Run now").click()
    assert re.fullmatch("The job .* is stored.", toast(page))
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
    banner = page.locator(".banner", has_text="Searched back to")
    expect(banner).to_contain_text(re.compile(r"\d\d:\d\d:\d\d .*0 found\."))
    expect(page.locator("[aria-busy]")).to_have_count(0)
    while not ids_on(page):
        with page.expect_response(re.compile("search_ms=")):
            banner.get_by_role("button", name="Search on").click()
        expect(page.locator("[aria-busy]")).to_have_count(0)
    expect(page.locator("main tbody tr").first).to_contain_text("needle")
