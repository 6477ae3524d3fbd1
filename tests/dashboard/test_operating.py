"""What an operator does at night: several queues at once, one job elsewhere, a worker, a backup."""

import json
import re
import tarfile
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Browser, Page, expect

from .place import Place, key_file, serving
from .test_acting import api
from .test_lists import push
from .test_pages import go
from .test_sweep_dialogs import command, shown_to_work


def confirm(page: Page, button: str, said: str | re.Pattern[str]) -> None:
    """Press a button of the dialog, read what it says, and close it."""
    page.get_by_role("dialog").get_by_role("button", name=button).click()
    expect(page.get_by_role("dialog")).to_contain_text(said)
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)


def names(page: Page) -> list[str]:
    rows = page.locator("main tbody tr")
    found: list[str] = rows.evaluate_all("rows => rows.map(row => row.dataset.key)")
    return found


def test_queues_are_a_tree_by_the_parts_of_their_names(place: Place, page: Page) -> None:
    for queue in ("tree.mail.in", "tree.mail.out", "tree.sms", "treeless"):
        push(place, 1, queue)
    go(page, place, "queues?q=tree&sort=name")
    page.get_by_label("As a tree").check()
    page.get_by_role("button", name="Show").click()
    expect(page.get_by_role("link", name="tree.*")).to_be_visible()
    assert names(page) == ["tree.", "treeless"]
    expect(page.locator("tr[data-key='tree.']")).to_contain_text("no worker for 3")
    page.get_by_role("link", name="tree.*").click()
    expect(page.get_by_role("link", name="tree.mail.*")).to_be_visible()
    assert names(page) == ["tree.mail.", "tree.sms"]
    page.get_by_role("link", name="All").click()
    expect(page.get_by_role("link", name="treeless")).to_be_visible()


def test_selected_queues_are_paused_together_and_resumed(place: Place, page: Page) -> None:
    for queue in ("many-a", "many b", "many-c"):
        push(place, 1, queue)
    go(page, place, "queues?q=many&sort=name")
    for queue in ("many-a", "many b"):
        page.get_by_label(f"Select {queue}").check()
    page.get_by_role("button", name="Pause…").click()
    page.get_by_label("Reason").fill("moving")
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text(
        """for queue in 'many b' many-a; do zq pause "$queue" --reason moving"""
        f" --url {place.primary}; done"
    )
    expect(dialog).to_contain_text("for queue in many%20b many-a; do curl -X PATCH")
    confirm(page, "Pause", "2 queues are paused.")
    for queue, paused in (("many-a", True), ("many%20b", True), ("many-c", None)):
        assert api(place, f"/queues/{queue}/settings").get("paused") is paused
    expect(page.locator("tr[data-key='many b']")).to_contain_text("(moving)")
    page.get_by_label("Select many b").check()
    page.get_by_role("button", name="Resume…").click()
    confirm(page, "Resume", "The queue is delivered again.")
    assert "paused" not in api(place, "/queues/many%20b/settings")


def test_a_finding_leads_to_the_job_that_waits_and_is_acted_on_where_it_stands(
    place: Place, ids: dict[str, str], page: Page
) -> None:
    for n in range(8):
        push(place, 1, f"orphan-{n}")
    go(page, place)
    page.get_by_text(re.compile("^and .* more$")).click()
    dead = page.locator(".findings li[data-code=dead]", has_text="died")
    dead.get_by_role("button", name="Requeue…").click()
    expect(page.get_by_role("dialog")).to_contain_text("Requeue 3 dead jobs")
    confirm(page, "Requeue 3 jobs", "3 jobs are ready again.")
    expect(dead).to_have_count(0)
    line = page.locator(".findings li[data-code=no_worker]", has_text="mail: no worker")
    line.get_by_role("link", name="Why").click()
    expect(page.locator("main h1")).to_contain_text(ids["ready"])
    expect(page.locator("main li[data-code=no_worker]")).to_be_visible()


def test_a_waiting_job_is_moved(place: Place, page: Page) -> None:
    job = {"queue": "here", "type": "t", "payload": 1}
    id = httpx.post(f"{place.primary}/jobs", json=job, trust_env=False).json()["id"]
    go(page, place, f"job?id={id}")
    page.get_by_role("button", name="Move…").click()
    page.get_by_label("Queue").fill("there")
    page.get_by_label("Priority").fill("7")
    page.get_by_label("Minutes until").fill("60")
    said = shown_to_work(place, command(page))
    assert said == f"{id} is scheduled in there, with the priority 7\n"
    back = {"queue": "here", "priority": 1, "ready_at": None}
    httpx.patch(f"{place.primary}/jobs/{id}", json=back, trust_env=False)
    confirm(page, "Move", "The job is scheduled in there.")
    moved = api(place, f"/jobs/{id}")
    assert (moved["queue"], moved["priority"]) == ("there", 7)


def test_the_connection_of_a_worker_is_dropped(place: Place, page: Page) -> None:
    push(place, 60, "taken")
    query = {"queue": "taken", "prefetch": "60", "worker": "stuck"}
    url = f"{place.primary}/jobs/take"
    with httpx.stream("GET", url, params=query, trust_env=False, timeout=20) as taken:
        lines = (line for line in taken.iter_lines() if line)
        next(lines)
        go(page, place, "workers")
        row = page.locator("main tbody tr", has_text="stuck")
        expect(row.locator("td").nth(1)).to_have_text("60")
        row.get_by_role("button", name="Drop…").click()
        assert command(page) == ["workers", "drop", "stuck"]
        confirm(page, "Drop it", "1 stream is closed.")
        assert len(list(lines)) == 59
    expect(row).to_have_count(0)
    assert api(place, "/jobs/count?queue=taken&status=ready") == {"count": 60}


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
    for each in (page, other):
        go(each, place, "queue?name=slow")
    page.get_by_role("button", name="Settings").click()
    page.get_by_label("New numbers every").select_option("60 s")
    page.keyboard.press("Escape")
    push(place, 1, "slow")
    expect(other.locator("main dd").first).to_have_text("1")
    expect(page.locator("main dd").first).to_have_text("0")
    page.keyboard.press("?")
    page.get_by_label("New numbers every").select_option("1 s")
    expect(page.locator("main dd").first).to_have_text("1")
    other.close()


def test_a_deployment_is_marked_in_the_chart(place: Place, page: Page) -> None:
    go(page, place)
    expect(page.locator("button[aria-pressed=true]")).to_have_text("1h")
    page.get_by_role("button", name="Mark this moment…").click()
    page.get_by_label("Name").fill("it's out")
    assert shown_to_work(place, command(page)) == "it's out is marked\n"
    page.get_by_label("Name").fill("release 1.8.2")
    confirm(page, "Mark it", "release 1.8.2 is marked.")
    expect(page.locator("svg text", has_text="release 1.8.2")).to_be_visible()
    page.get_by_text("Table", exact=True).click()
    expect(page.locator("figure li", has_text="release 1.8.2")).to_be_visible()


# With keys


@pytest.fixture(scope="module")
def keyed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    root = tmp_path_factory.mktemp("keyed")
    with serving(root / "data", "--keys", str(key_file(root / "keys"))) as place:
        yield place


def test_the_audit_is_saved_as_lines_and_shows_who_may_do_what(
    keyed: Place, browser: Browser
) -> None:
    headers = {"Authorization": "Bearer allall"}
    for n in range(2):
        url = f"{keyed.primary}/queues/q{n}/settings"
        httpx.patch(url, json={"max_depth": 5}, headers=headers, trust_env=False)
    page = browser.new_page()
    page.goto(f"{keyed.ui}#/audit")
    page.get_by_label("Access key").fill("allall")
    page.get_by_role("button", name="Sign in").click()
    keys = page.get_by_role("table", name="Keys")
    expect(keys.locator("tr", has_text="reader-sender")).to_contain_text("enqueue, read")
    expect(page.locator("main")).to_contain_text("You are signed in by the key all.")
    with page.expect_download() as saved:
        page.get_by_role("button", name="Save all as NDJSON").click()
    lines = Path(saved.value.path()).read_text().splitlines()
    assert [json.loads(line)["path"] for line in lines] == [
        "/queues/q1/settings",
        "/queues/q0/settings",
    ]
    page.context.close()
