"""What changes jobs, by the keyboard alone; and what the page says of a server that is silent."""

import re
import signal
from collections.abc import Iterator

import httpx
import pytest
from playwright.sync_api import Page, expect

from .place import HOSTILE, Place, seed, serving
from .test_pages import complete, go


@pytest.fixture
def page(same_page: Page) -> Page:
    """One page for all of this file."""
    return same_page


def api(place: Place, path: str) -> dict[str, object]:
    reply = httpx.get(f"{place.primary}{path}", trust_env=False)
    document: dict[str, object] = reply.json()
    return document


def toast(page: Page) -> str:
    """What the page says that it has done. All messages are closed."""
    box = page.locator(".toast").last
    expect(box).to_be_visible()
    said = box.locator("span").first.inner_text()
    page.locator("#toasts").evaluate("all => all.replaceChildren()")
    return said


def test_a_key_means_no_job_that_nobody_has_chosen(
    place: Place, ids: dict[str, str], page: Page
) -> None:
    go(page, place, "jobs?f=queue%3Adied%2Cmail")
    before = api(place, "/jobs/count?queue=mail&status=ready")
    page.evaluate("document.activeElement.blur()")
    for key in "crm#":
        page.keyboard.press(key)
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(page.locator(".toast")).to_have_count(0)
    assert api(place, "/jobs/count?queue=mail&status=ready") == before
    # On the page of a job they mean that job.
    go(page, place, f"job?id={ids['scheduled']}")
    page.keyboard.press("m")
    expect(page.get_by_role("dialog")).to_be_visible()


def test_a_dead_job_is_found_and_retried_by_the_keyboard_alone(
    place: Place, ids: dict[str, str], page: Page
) -> None:
    go(page, place)
    page.keyboard.press("g")
    page.keyboard.press("j")
    complete(page, "/jobs")
    page.keyboard.press("f")
    expect(page.locator("#filter")).to_be_focused()
    page.keyboard.type("status:dead queue:died")
    page.keyboard.press("Enter")
    expect(page.locator("main tbody tr")).to_have_count(3)
    page.keyboard.press("j")
    id = page.locator("tr", has=page.locator(":focus")).get_attribute("data-key")
    page.keyboard.press("Enter")
    panel = page.get_by_role("complementary")
    expect(panel).to_contain_text("It is dead: its attempt has failed, and its worker gave it up")
    expect(panel).to_contain_text("2 other dead jobs have the same cause")
    expect(panel.get_by_role("region", name="Last error")).to_contain_text("by w-1")
    expect(panel.get_by_label("Last error").last).to_have_text("SmtpError: SMTP 421 for 'ann'")
    page.keyboard.press("r")
    assert re.fullmatch("Job ….* of died is ready again.", toast(page))
    assert api(place, f"/jobs/{id}")["status"] == "ready"
    # What is open follows.
    expect(panel.locator(".pill").first).to_have_text("ready")
    expect(panel.get_by_role("button", name="Cancel", exact=True)).to_be_visible()


def dying(place: Place, queue: str, message: str) -> None:
    """Two jobs of a queue die of one cause."""
    with httpx.Client(base_url=place.primary, trust_env=False) as http:
        for _ in range(2):
            http.post("/jobs", json={"queue": queue, "type": "t", "payload": 1})
        taken = {"max": 2, "lease_ms": 3_600_000, "holder": "w-1"}
        for job in http.post(f"/queues/{queue}/claim", json=taken).json()["jobs"]:
            failure = {"message": message, "kill": True, "lease": job["lease"]}
            assert http.post(f"/jobs/{job['id']}/failure", json=failure).is_success


@pytest.mark.parametrize("how", ["mouse", "keyboard"])
def test_the_jobs_of_one_cause_of_the_last_hour_are_retried_in_two_clicks(
    place: Place, ids: dict[str, str], page: Page, how: str
) -> None:
    dying(place, f"outage-{how}", f"the {how} gateway is away")
    go(page, place)
    cause = page.get_by_role("region", name=re.compile("^Why jobs failed")).locator("tr")
    row = cause.filter(has_text=f"the {how} gateway is away")
    dialog = page.get_by_role("dialog")
    if how == "mouse":
        row.get_by_role("button", name="Requeue").click()
        dialog.get_by_role("button", name="Requeue 2 jobs").click()
    else:
        row.get_by_role("link").first.focus()
        page.keyboard.press("r")
        expect(dialog).to_contain_text(f"Requeues 2 jobs of outage-{how}.")
        page.keyboard.press("Enter")
    assert toast(page) == "2 jobs are ready again."
    assert api(place, f"/jobs/count?queue=outage-{how}&status=ready") == {"count": 2}


def test_why_a_job_did_not_run_takes_two_clicks_or_a_find(
    place: Place, ids: dict[str, str], page: Page
) -> None:
    go(page, place)
    pages = page.get_by_role("navigation", name="Pages")
    pages.get_by_role("link", name="Jobs", exact=True).click()
    page.locator(f"tr[data-key='{ids['scheduled']}'] th a").click()
    why = page.get_by_role("region", name="Why it does not run")
    expect(why.locator("[data-code=scheduled]")).to_be_visible()
    go(page, place)
    page.keyboard.press("/")
    page.keyboard.type(ids["scheduled"])
    page.keyboard.press("Enter")
    expect(page.locator("main h1")).to_have_text("send")
    expect(why.locator("[data-code=scheduled]")).to_be_visible()


def test_an_open_job_changes_when_somebody_else_acts_and_says_when_it_is_gone(
    place: Place, page: Page
) -> None:
    job = {"queue": "watched", "type": "t", "payload": 1}
    id = httpx.post(f"{place.primary}/jobs", json=job, trust_env=False).json()["id"]
    go(page, place, f"job?id={id}")
    pill = page.locator("main .pill").first
    expect(pill).to_have_text("ready")
    page.get_by_role("group", name="Payload").evaluate(
        "each => document.getSelection().selectAllChildren(each)"
    )
    httpx.post(f"{place.primary}/jobs/{id}/cancel", json={}, trust_env=False)
    expect(pill).to_have_text("cancelled")
    expect(page.get_by_role("button", name="Cancel", exact=True)).to_have_count(0)
    assert page.evaluate("document.getSelection().toString()") == "1"
    httpx.delete(f"{place.primary}/jobs/{id}", trust_env=False)
    expect(page.locator("main")).to_contain_text("It is gone: somebody has deleted it")
    expect(pill).to_have_text("gone")
    expect(page.locator("main [data-scope]")).to_have_count(0)


def test_an_address_without_a_job_says_so_and_offers_nothing(
    place: Place, ids: dict[str, str], page: Page
) -> None:
    for to, said in {
        "job": "This address names no job",
        "job?id=01KX4Q7M0G6ZB3T9V5Y2W8H1CD": "There is no such job",
        "job?id=": "This address names no job",
    }.items():
        go(page, place, to)
        expect(page.locator("main")).to_contain_text(said)
        expect(page.locator("main [data-scope]")).to_have_count(0)


def test_a_payload_is_shown_with_all_that_it_has_and_copied_as_it_is_stored(
    place: Place, ids: dict[str, str], page: Page
) -> None:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    go(page, place, f"job?id={ids['hostile']}")
    shown = page.get_by_role("group", name="Payload").text_content() or ""
    visible = HOSTILE.replace("\u202e", "\\u202e").replace("\u202c", "\\u202c")
    assert "".join(shown.split()) == "".join(visible.split())
    page.get_by_role("button", name="Copy the payload").click()
    assert toast(page) == "The payload is copied."
    assert page.evaluate("navigator.clipboard.readText()") == HOSTILE
    assert page.evaluate("window.hurt") is None
    assert page.locator("main img").count() == 0


def test_a_payload_that_is_cut_off_within_a_text_is_one_word(place: Place, page: Page) -> None:
    """Otherwise the page would try each quote within the text as a beginning."""
    job = {"queue": "long", "type": "t", "payload": ['"' * 100_000, 1]}
    made = httpx.post(f"{place.primary}/jobs", json=job, trust_env=False).json()
    go(page, place, f"job?id={made['id']}")
    shown = page.get_by_role("group", name="Payload")
    expect(shown).to_have_text(re.compile(r'^\[\s*"(\\")+\\?$'))
    page.get_by_role("button", name="Show all").first.click()
    expect(shown).to_have_text('["' + '\\"' * 100_000 + '",1]')
    httpx.delete(f"{place.primary}/jobs/{made['id']}", trust_env=False)


def test_groups_are_listed_with_what_they_wait_for_and_their_jobs(place: Place, page: Page) -> None:
    jobs = [
        {"queue": "ledger", "type": "book", "payload": n, "group": group}
        for group in ("acct 1", *(f"b{n:02}" for n in range(50)))
        for n in range(2)
    ]
    reply = httpx.post(f"{place.primary}/jobs/bulk", json={"jobs": jobs}, trust_env=False)
    first, second = (job["id"] for job in reply.json()["jobs"][:2])
    go(page, place, "queue?name=ledger&tab=groups")
    table = page.get_by_role("table", name="Groups of ledger with unfinished jobs")
    rows = table.locator("tbody tr")
    expect(rows).to_have_count(50)
    expect(rows.first).to_contain_text(re.compile("acct 1.*book.*ready"))
    expect(rows.first.locator("a.id")).to_have_attribute("title", first)
    rows.first.get_by_role("button", name="Jobs of the group acct 1").click()
    expect(page.locator(f"tr[data-key='{second}']")).to_be_visible()
    page.get_by_role("button", name="Next groups").click()
    expect(rows).to_have_count(1)
    expect(rows.first).to_contain_text("b49")
    page.get_by_role("button", name="First groups").click()
    expect(rows).to_have_count(50)


def test_fair_keys_are_listed_by_turn_wait_and_depth(place: Place, page: Page) -> None:
    jobs = [
        {"queue": "render", "type": "page", "payload": n, "fair_key": key}
        for key, count in (("acme", 3), ("tiny", 1), *((f"k{n:02}", 2) for n in range(50)))
        for n in range(count)
    ]
    httpx.post(f"{place.primary}/jobs/bulk", json={"jobs": jobs}, trust_env=False)
    limit = {"weight": 4, "max_in_flight": 20}
    httpx.put(f"{place.primary}/queues/render/fair/acme", json=limit, trust_env=False)
    go(page, place, "queue?name=render&tab=keys")
    rows = page.get_by_role("table", name="Fair keys of render with unfinished jobs").locator(
        "tbody tr"
    )
    expect(rows).to_have_count(50)
    page.get_by_role("button", name="By depth").click()
    expect(page.get_by_role("button", name="By depth", pressed=True)).to_be_visible()
    expect(rows.first).to_contain_text("acme")
    expect(rows.first).to_contain_text("weight 4, at most 20 in flight")
    page.get_by_role("button", name="Next keys").click()
    expect(rows).to_have_count(2)
    expect(rows.last).to_contain_text("tiny")


def test_pausing_a_queue_shows_at_once_where_it_is_looked_at(
    place: Place, ids: dict[str, str], page: Page
) -> None:
    go(page, place, "queue?name=mail")
    page.get_by_role("button", name="Pause…").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Reason").fill("moving")
    dialog.get_by_label("Pause for").fill("90 min")
    expect(dialog).to_contain_text(re.compile("zq pause mail --for .*moving"))
    dialog.get_by_role("button", name="Pause").click()
    assert "paused" in toast(page)
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
    page.get_by_role("button", name="Delete all 101…").click()
    button = page.get_by_role("dialog").get_by_role("button", name="Delete 101 jobs")
    expect(button).to_be_disabled()
    field = page.get_by_label("Type many, the name of the queue")
    expect(field).to_be_focused()
    page.keyboard.type("man")
    # Neither Enter nor a script sends what was not typed.
    page.keyboard.press("Enter")
    page.locator("dialog form").evaluate("form => form.requestSubmit()")
    button.evaluate("button => { button.disabled = false; button.click(); }")
    page.keyboard.type("y")
    page.keyboard.press("Enter")
    expect(button).to_be_enabled()
    assert api(place, "/jobs/count?queue=many") == {"count": 101}
    button.click()
    assert toast(page) == "101 jobs are deleted."
    expect(page.get_by_role("dialog")).to_have_count(0)
    assert api(place, "/jobs/count?queue=many") == {"count": 0}


def test_a_row_keeps_its_element_while_others_change_around_it(
    place: Place, ids: dict[str, str], page: Page
) -> None:
    go(page, place)
    row = page.locator("main tr[data-key=mail]")
    row.locator("a").first.focus()
    row.evaluate("row => { row.mark = 1; }")
    table = page.get_by_role("region", name="Queues", exact=True)
    before = table.locator("tbody tr").count()
    for n in range(3):
        job = {"queue": f"new-{n}", "type": "t", "payload": 1}
        httpx.post(f"{place.primary}/jobs", json=job, trust_env=False)
    # A row with focus stands still; those that come are counted.
    expect(table.get_by_role("button", name=re.compile(r"^\+\d new$"))).to_be_visible()
    assert table.locator("tbody tr").count() == before
    assert row.evaluate("row => row.mark") == 1
    assert row.locator("a").first.evaluate("link => link === document.activeElement")


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
    expect(page.locator("#live")).to_have_text(re.compile("^stale"))
    expect(page.locator(".findings li").first).to_be_visible()
    own_place.process.send_signal(signal.SIGCONT)
    expect(page.locator("#live")).to_have_text("live")


def test_what_waits_is_cancelled_of_a_queue_and_of_a_cause_be_it_ready_or_scheduled(
    place: Place, page: Page
) -> None:
    with httpx.Client(base_url=place.primary, trust_env=False) as http:
        for _ in range(2):
            http.post("/jobs", json={"queue": "waiters", "type": "t", "payload": 1})
        taken = {"max": 2, "lease_ms": 3_600_000, "holder": "w-1"}
        jobs = http.post("/queues/waiters/claim", json=taken).json()["jobs"]
        for job in jobs:
            failure = {"message": "the waiters are away", "lease": job["lease"]}
            assert http.post(f"/jobs/{job['id']}/failure", json=failure).is_success
        assert http.patch(f"/jobs/{jobs[0]['id']}", json={"ready_at": None}).is_success
    assert {api(place, f"/jobs/{job['id']}")["status"] for job in jobs} == {"ready", "scheduled"}
    dialog = page.get_by_role("dialog")
    go(page, place, "queue?name=waiters")
    page.get_by_role("button", name="More for waiters").click()
    page.get_by_role("button", name="Cancel what waits…").click()
    expect(dialog).to_contain_text("Cancels 2 jobs of waiters")
    page.keyboard.press("Escape")
    go(page, place, "failures?queue=waiters")
    page.get_by_role("button", name="More for").click()
    page.get_by_role("button", name="Cancel those that wait…").click()
    dialog.get_by_role("button", name="Cancel 2 jobs").click()
    expect(page.locator(".toast")).to_contain_text("2 jobs of waiters are cancelled.")
