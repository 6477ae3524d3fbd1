"""What an operator does at night: several queues at once, one job elsewhere, a worker, a backup."""

import json
import re
import sqlite3
import tarfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Page, expect

from .conftest import NewPage
from .place import Place, key_file, serving, until
from .test_acting import api
from .test_lists import push
from .test_pages import go
from .test_sweep_dialogs import command, shown_to_work


@pytest.fixture
def page(same_page: Page) -> Page:
    """One page for all of this file."""
    return same_page


def confirm(page: Page, button: str, said: str | re.Pattern[str]) -> None:
    """Press a button of the dialog, which closes, and read what was done."""
    page.get_by_role("dialog").get_by_role("button", name=button, exact=True).click()
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(page.locator(".toast").last).to_contain_text(said)


def names(page: Page) -> list[str]:
    """The keys of all rows as they are now. What was stored lately may not be among them yet."""
    rows = page.locator("main tbody tr")
    found: list[str] = rows.evaluate_all("rows => rows.map(row => row.dataset.key)")
    return found


def test_queues_are_a_tree_by_the_parts_of_their_names(place: Place, page: Page) -> None:
    for queue in ("tree.mail.in", "tree.mail.out", "tree.sms", "treeless"):
        push(place, 1, queue)
    go(page, place, "queues?q=tree&sort=name")
    page.get_by_role("button", name="Tree", exact=True).click()
    until(lambda: names(page) == ["tree.", "treeless"])
    # It says how many there are until their jobs have waited for a minute.
    count = re.compile("3 queues|no worker for 3")
    expect(page.locator("tr[data-key='tree.']")).to_contain_text(count)
    page.get_by_role("link", name="tree.*").click()
    until(lambda: names(page) == ["tree.mail.", "tree.sms"])
    page.get_by_role("link", name="All", exact=True).click()
    expect(page.get_by_role("link", name="treeless")).to_be_visible()


def test_selected_queues_are_paused_together_and_resumed(place: Place, page: Page) -> None:
    for queue in ("many-a", "many b", "many-c"):
        push(place, 1, queue)
    go(page, place, "queues?q=many&sort=name")
    for queue in ("many-a", "many b"):
        page.get_by_label(f"Select {queue}").check()
    selection = page.get_by_role("region", name="Selection")
    expect(selection).to_contain_text("2 selected")
    selection.get_by_role("button", name="Pause 2…").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Reason").fill("moving")
    expect(dialog).to_contain_text(
        """for queue in many-a 'many b'; do zq pause "$queue" --reason moving"""
        f" --url {place.primary}; done"
    )
    expect(dialog).to_contain_text("for queue in many-a many%20b; do curl -X PATCH")
    confirm(page, "Pause 2 queues", "many-a and many b are paused.")
    for queue, paused in (("many-a", True), ("many%20b", True), ("many-c", None)):
        assert api(place, f"/queues/{queue}/settings").get("paused") is paused
    expect(page.locator("tr[data-key='many b']")).to_contain_text("paused")
    expect(selection).to_have_count(0)
    page.get_by_label("Select many b").check()
    selection.get_by_role("button", name="Resume…").click()
    confirm(page, "Resume", "many b is delivered again.")
    assert "paused" not in api(place, "/queues/many%20b/settings")


@pytest.mark.parametrize("verb", ["Pause", "Resume"])
def test_what_is_done_of_several_queues_is_told_if_one_is_refused(
    place: Place, page: Page, verb: str
) -> None:
    queues = [f"{verb.lower()}-{each}" for each in "abc"]

    def paused() -> list[bool]:
        return ["paused" in api(place, f"/queues/{queue}/settings") for queue in queues]

    for queue in queues:
        url = f"{place.primary}/queues/{queue}/settings"
        httpx.patch(url, json={"paused": verb == "Resume" or None}, trust_env=False)
        push(place, 1, queue)
    before = paused()
    go(page, place, f"queues?q={verb.lower()}-&sort=name")
    for queue in queues:
        page.get_by_label(f"Select {queue}").check()
    selection = page.get_by_role("region", name="Selection")
    selection.get_by_role("button", name=f"{verb} 3…").click()
    refused = f"**/queues/{queues[1]}/settings"
    page.route(refused, lambda route: route.fulfill(status=503, json={"error": "it is busy"}))
    said = f"1 of 3 queues are done. At {queues[1]}: Refused: it is busy"
    confirm(page, f"{verb} 3 queues", said)
    page.unroute(refused)
    assert paused() == [not before[0], *before[1:]]
    expect(selection).to_have_count(0)
    if verb == "Pause":
        page.locator(".toast").last.get_by_role("button", name="Undo").click()
        until(lambda: paused() == before)


def test_a_finding_leads_to_the_queue_which_says_why_its_jobs_wait(
    place: Place, page: Page
) -> None:
    # It has more jobs than other paused ones, so that it is named first.
    push(place, 9, "stopped")
    settings = {"paused": True, "pause_reason": "wrong list"}
    httpx.patch(f"{place.primary}/queues/stopped/settings", json=settings, trust_env=False)
    go(page, place)
    line = page.locator(".findings li[data-code=paused]")
    line.get_by_role("link", name="stopped", exact=True).click()
    expect(page.locator("main h1")).to_have_text("stopped")
    why = page.get_by_role("region", name="Why its jobs wait")
    expect(why).to_contain_text("It is paused (wrong list): resume it to have its jobs delivered.")
    expect(why.locator("li[data-code=no_worker]")).to_contain_text("Nobody takes its jobs")
    why.get_by_role("button", name="Resume stopped").click()
    confirm(page, "Resume", "stopped is delivered again.")
    expect(why.locator("li[data-code=paused]")).to_have_count(0)
    why.get_by_role("link", name="Workers").click()
    parts = page.get_by_role("navigation", name="Parts of the queue")
    expect(parts.locator("[aria-current=page]")).to_have_text("Workers")


def test_a_waiting_job_is_moved(place: Place, page: Page) -> None:
    push(place, 1, "there")
    job = {"queue": "here", "type": "t", "payload": 1}
    id = httpx.post(f"{place.primary}/jobs", json=job, trust_env=False).json()["id"]
    go(page, place, f"job?id={id}")
    page.get_by_role("button", name="Move…").first.click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Queue").fill("there")
    dialog.get_by_label("Priority").fill("7")
    dialog.get_by_label(re.compile("^(Ready|Wait|Delay|When|In)")).first.fill("60 min")
    said = shown_to_work(place, command(page))
    assert said == f"{id} is scheduled in there, with the priority 7\n"
    back = {"queue": "here", "priority": 1, "ready_at": None}
    httpx.patch(f"{place.primary}/jobs/{id}", json=back, trust_env=False)
    confirm(page, "Move", "is scheduled in there.")
    moved = api(place, f"/jobs/{id}")
    assert (moved["queue"], moved["priority"]) == ("there", 7)


def test_the_connection_of_a_worker_is_dropped(place: Place, page: Page) -> None:
    push(place, 60, "taken")
    query = {"queue": "taken", "prefetch": "60", "worker": "stuck"}
    url = f"{place.primary}/jobs/take"
    with httpx.stream("GET", url, params=query, trust_env=False, timeout=60) as taken:
        lines = (line for line in taken.iter_lines() if line)
        next(lines)
        go(page, place, "workers")
        row = page.get_by_role("table", name="Open streams").locator("tr", has_text="stuck")
        expect(row.get_by_title("holds 60 of the 60")).to_have_text("1 / 1")
        row.get_by_role("button", name="Drop stuck").click()
        assert command(page) == ["workers", "drop", "stuck"]
        confirm(page, "Drop it", "1 stream is closed.")
        assert len(list(lines)) == 59
    # A row with the focus stays.
    page.locator("#main").focus()
    expect(row).to_have_count(0)
    until(lambda: api(place, "/jobs/count?queue=taken&status=ready") == {"count": 60})


def test_a_backup_is_downloaded(place: Place, page: Page, tmp_path: Path) -> None:
    go(page, place, "health")
    page.get_by_role("button", name="Backup now…").click()
    expect(page.get_by_role("dialog")).to_contain_text("zq backup zq.tar.gz")
    with page.expect_download() as saved:
        page.get_by_role("button", name="Download the backup").click()
    file = tmp_path / saved.value.suggested_filename
    saved.value.save_as(file)
    with tarfile.open(file) as archive:
        assert any(name.endswith(".db") for name in archive.getnames())


def test_numbers_change_as_seldom_as_the_viewer_likes(place: Place, page: Page) -> None:
    other = page.context.new_page()
    waiting = ".tile[data-key=Waiting] strong"
    for each in (page, other):
        go(each, place, "queue?name=slow")
        expect(each.locator(waiting)).to_have_text("0")
    page.get_by_role("button", name="Settings: zone, theme, pace, keys").click()
    page.get_by_label("New numbers").select_option("60")
    page.keyboard.press("Escape")
    push(place, 1, "slow")
    expect(other.locator(waiting)).to_have_text("1")
    expect(page.locator(waiting)).to_have_text("0")
    page.keyboard.press("?")
    page.get_by_label("New numbers").select_option("1")
    page.keyboard.press("Escape")
    expect(page.locator(waiting)).to_have_text("1")
    other.close()


def test_a_deployment_is_marked_in_the_chart(place: Place, page: Page) -> None:
    go(page, place)
    page.get_by_role("button", name="Mark this moment…").click()
    name = page.get_by_role("dialog").get_by_label("Name")
    name.fill("it's out")
    assert shown_to_work(place, command(page)) == "it's out is marked\n"
    name.fill("release 1.8.2")
    confirm(page, "Mark it", "release 1.8.2 is marked.")
    expect(page.locator("svg text.mark-text").first).to_have_text(re.compile("marks|1.8.2"))


# With keys


@pytest.fixture(scope="module")
def keyed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    root = tmp_path_factory.mktemp("keyed")
    with serving(root / "data", "--keys", str(key_file(root / "keys"))) as place:
        yield place


def test_the_audit_is_saved_as_lines_and_shows_who_may_do_what(
    keyed: Place, new_page: NewPage
) -> None:
    headers = {"Authorization": "Bearer allall"}
    for n in range(2):
        url = f"{keyed.primary}/queues/q{n}/settings"
        httpx.patch(url, json={"max_depth": 5}, headers=headers, trust_env=False)
    page = new_page()
    page.goto(f"{keyed.ui}#/health")
    page.get_by_label("Access key").fill("allall")
    page.get_by_role("button", name="Sign in").click()
    keys = page.get_by_role("table", name="Keys")
    expect(keys.locator("tr", has_text="reader-sender")).to_contain_text("enqueue, read")
    expect(page.locator("main")).to_contain_text("You are signed in by the key all.")
    page.get_by_role("navigation", name="Pages").get_by_role("link", name="Activity").click()
    with page.expect_download() as saved:
        page.get_by_role("button", name="Save all as NDJSON").click()
    lines = Path(saved.value.path()).read_text().splitlines()
    assert [json.loads(line)["path"] for line in lines] == [
        "/queues/q1/settings",
        "/queues/q0/settings",
    ]


def pause(place: Place, queues: list[str]) -> None:
    """Pause queues in each of which a job waits. Return when the page's findings have them."""
    for queue in queues:
        push(place, 1, queue)
        settings = {"paused": True}
        httpx.patch(f"{place.primary}/queues/{queue}/settings", json=settings, trust_env=False)
    looked = f"{place.ui}look?topic=findings&q=paused&limit=50"
    until(lambda: all(queue in httpx.get(looked, trust_env=False).text for queue in queues))


def test_a_finding_of_many_queues_unfolds_in_its_place(place: Place, page: Page) -> None:
    pause(place, [f"folded-{n}" for n in range(6)])
    go(page, place)
    line = page.locator(".findings li[data-code=paused]")
    line.get_by_role("button", name=re.compile("^[0-9]+ more of paused")).click()
    for n in range(6):
        expect(line.get_by_role("link", name=f"folded-{n}")).to_have_count(1)
    line.get_by_role("button", name="fewer of paused").click()
    expect(line.locator(".unfolded")).to_have_count(0)


def test_an_open_job_names_who_has_cancelled_it_and_why(place: Place, page: Page) -> None:
    job = {"queue": "called-off", "type": "t", "payload": 1}
    id = httpx.post(f"{place.primary}/jobs", json=job, trust_env=False).json()["id"]
    called_off = f"{place.primary}/jobs/cancel?id={id}&reason=wrong+list"
    assert httpx.post(called_off, trust_env=False).json()["cancelled"] == 1
    go(page, place, f"job?id={id}")
    why = page.get_by_role("region", name="Why it is not run")
    expect(why).to_contain_text("it was cancelled: wrong list")


REPEAT = """
UPDATE log_batches SET last_seq = 1010, count = 1010, checksum = NULL,
    body = CAST('[' || rtrim(replace(hex(zeroblob(505)), '0', trim(body, '[]') || ','), ',') || ']'
        AS BLOB)
WHERE log = (SELECT id FROM logs WHERE name = 'audit');
UPDATE logs SET max_seq = 1010 WHERE name = 'audit';
"""
"""The only action of a server that does not run becomes 1,010 actions."""


def test_activity_goes_on_beyond_a_thousand_actions(page: Page, tmp_path: Path) -> None:
    data = tmp_path / "data"
    with serving(data) as place:
        path = f"{place.primary}/queues/q/settings"
        assert httpx.patch(path, json={"max_depth": 5}, trust_env=False).is_success
    with closing(sqlite3.connect(data / "zq.db")) as database, database:
        database.executescript(REPEAT)
    with serving(data) as place:
        go(page, place, "activity")
        rows = page.get_by_role("region", name="What was done").locator("tbody tr")
        expect(rows).to_have_count(50)
        asked = page.locator("main").evaluate(MOST_ACTIONS)
        assert asked == [1_010, 1_010]


MOST_ACTIONS = """async () => {
    const source = document.querySelector("script[src*=main]").src.replace("main", "activity");
    const { actionsOf } = await import(source);
    const found = await actionsOf({}, 2000);
    return [found.length, new Set(found.map(each => each.seq)).size];
}"""
