"""The dialogs of changes by filter: they show what they would change, and change no more."""

import re
import shlex
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from click.testing import CliRunner
from playwright.sync_api import Page, Request, expect

from zq.cli.group import main

from .place import Place
from .test_acting import api, toast
from .test_pages import go


@pytest.fixture
def page(same_page: Page) -> Page:
    """One page for all of this file."""
    return same_page


def command(page: Page) -> list[str]:
    """The words of the command that the dialog shows, but for those that name the server."""
    shown = page.get_by_role("dialog").get_by_label("zq", exact=True).text_content() or ""
    zq, *words, flag, url = shlex.split(shown)
    assert (zq, flag) == ("zq", "--url")
    assert httpx.get(f"{url}/queues", trust_env=False).status_code == 200
    return words


def shown_to_work(place: Place, words: list[str]) -> str:
    """What a command says that ends well."""
    done = CliRunner().invoke(main, [*words, "--url", place.primary])
    assert done.exit_code == 0, done.output
    return done.stdout


def post(place: Place, path: str, body: Any) -> Any:
    reply = httpx.post(f"{place.primary}{path}", json=body, trust_env=False)
    assert reply.is_success, reply.text
    return reply.json()


def mixed(place: Place, queue: str, completed: int, dead: int, ready: int) -> None:
    """So many jobs of a queue in these statuses."""
    retention = {"completed_ms": 86_400_000}
    job = {"queue": queue, "type": "t", "payload": 1, "retention": retention}
    post(place, "/jobs/bulk", {"jobs": [job] * (completed + dead + ready)})
    taken = {"max": completed + dead, "lease_ms": 3_600_000, "holder": "w-1"}
    for n, each in enumerate(post(place, f"/queues/{queue}/claim", taken)["jobs"]):
        lease = {"lease": each["lease"]}
        if n < completed:
            url = f"{place.primary}/jobs/{each['id']}/success"
            assert httpx.post(url, json=lease, trust_env=False).is_success
        else:
            post(place, f"/jobs/{each['id']}/failure", lease | {"message": "no", "kill": True})


def test_the_dialog_shows_a_command_that_does_the_same(
    place: Place, page: Page, ids: dict[str, str]
) -> None:
    go(page, place, "jobs?f=status%3Adead")
    page.get_by_role("button", name="Requeue all 3…").click()
    page.get_by_role("dialog").get_by_label("Reason").fill("it's mended")
    words = command(page)
    assert words[:4] == ["requeue", "--status", "dead", "--upto"]
    assert words[-2:] == ["--reason", "it's mended"]
    assert shown_to_work(place, words) == "3 jobs requeued\n"
    assert api(place, "/jobs/count?status=dead") == {"count": 0}


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('group:"a b" priority:3..5', ["--group", "a b", "--priority", "3..5"]),
        ("queue:narrow attempts:..0 age:<1h", ["--queue", "narrow", "--attempts", "..0"]),
        ("queue:narrow age:>0s type:t", ["--queue", "narrow", "--type", "t", "--ready-before"]),
    ],
    ids=["group", "young", "old"],
)
def test_the_command_of_a_dialog_means_the_jobs_that_its_filter_means(
    place: Place, page: Page, line: str, words: list[str]
) -> None:
    jobs = [
        {"queue": "narrow", "type": "t", "payload": 1, "group": "a b", "priority": 4},
        {"queue": "narrow", "type": "t", "payload": 2, "group": "c", "priority": 9},
    ]
    post(place, "/jobs/bulk", {"jobs": jobs})
    go(page, place, f"jobs?f={quote(line)}")
    page.get_by_role("button", name=re.compile("^Delete all")).click()
    dialog = page.get_by_role("dialog")
    found = re.search("Delete ([0-9]+) jobs?", dialog.locator("h2").inner_text())
    assert found is not None
    assert not re.search("[0-9]{12}", dialog.inner_text()), "a time is told in milliseconds"
    shown = command(page)
    assert set(words) <= set(shown)
    count = int(found[1])
    assert shown_to_work(place, shown) == f"{count} job{'s' * (count != 1)} deleted\n"


def test_a_deletion_says_by_status_what_is_lost_and_offers_to_cancel_first(
    place: Place, page: Page
) -> None:
    mixed(place, "loss", completed=3, dead=1, ready=2)
    go(page, place, "jobs?f=queue%3Aloss")
    for label in ("Requeue 1 dead…", "Cancel 2 waiting…", "Move 2 waiting…", "Delete all 6…"):
        expect(page.get_by_role("button", name=label)).to_be_visible()
    page.get_by_role("button", name="Delete all 6…").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.locator("h2")).to_have_text("Delete 6 jobs of loss?")
    expect(dialog).to_contain_text("Deletes 6 jobs of loss: 3 completed, 2 ready, 1 dead.")
    assert [row.split("\t")[-1] for row in dialog.locator("tbody tr").all_inner_texts()] == [
        "their results",
        "work that never ran",
        "work that failed, and why",
    ]
    expect(dialog).to_contain_text("Filter: queue:loss")
    # Nothing is destroyed by the key that ends other dialogs.
    dialog.get_by_label("Reason").press("Enter")
    expect(dialog).to_have_count(1)
    dialog.get_by_role("button", name="Cancel 2 instead…").click()
    expect(dialog.locator("h2")).to_have_text("Cancel 2 jobs of loss?")
    dialog.get_by_role("button", name="Cancel 2 jobs").click()
    expect(page.locator(".toast")).to_contain_text("2 jobs of loss are cancelled.")
    assert api(place, "/jobs/count?queue=loss") == {"count": 6}
    page.locator(".toast").get_by_role("button", name="Undo").click()
    expect(page.locator(".toast")).to_contain_text("2 jobs wait again.")
    assert api(place, "/jobs/count?queue=loss&status=ready") == {"count": 2}


def test_a_mixed_selection_says_how_many_each_verb_takes(place: Place, page: Page) -> None:
    mixed(place, "some", completed=1, dead=2, ready=3)
    go(page, place, "jobs?f=queue%3Asome")
    page.get_by_label("Select the 6 of this page").check()
    bar = page.get_by_role("region", name="Selection")
    labels = ["Requeue 2 dead…", "Cancel 3 waiting…", "Move 3 waiting…", "Delete 6…", ""]
    expect(bar.get_by_role("button")).to_have_text(labels)
    bar.get_by_role("button", name="Requeue 2 dead…").click()
    expect(page.get_by_role("dialog")).to_contain_text("Requeues 2 jobs of some.")
    page.get_by_role("dialog").get_by_role("button", name="Requeue 2 jobs").click()
    assert toast(page) == "2 jobs are ready again."
    assert api(place, "/jobs/count?queue=some&status=ready") == {"count": 5}


def test_selected_jobs_are_deleted_by_the_command_that_the_dialog_shows(
    place: Place, page: Page
) -> None:
    job = {"queue": "picked", "type": "t", "payload": 1}
    ids = [post(place, "/jobs", job)["id"] for _ in range(3)]
    go(page, place, "jobs?f=queue%3Apicked")
    for id in ids[:2]:
        page.locator(f"tr[data-key='{id}'] input").check()
    page.get_by_role("button", name="Delete 2…").click()
    page.get_by_role("dialog").get_by_label("Reason").fill("a test")
    words = command(page)
    assert words[:3] == ["delete", "--id", f"{ids[0]},{ids[1]}"]
    assert shown_to_work(place, words) == "2 jobs deleted\n"
    (sweep,) = httpx.get(f"{place.primary}/sweeps/ended?limit=1", trust_env=False).json()["sweeps"]
    assert (sweep["verb"], sweep["reason"]) == ("delete", "a test")
    page.keyboard.press("Escape")
    go(page, place, f"job?id={ids[2]}")
    page.get_by_role("button", name="Delete…", exact=True).click()
    words = command(page)
    assert shown_to_work(place, words) == f"{ids[2]} is deleted\n"
    assert api(place, "/jobs/count?queue=picked") == {"count": 0}


@pytest.mark.parametrize(
    ("label", "verb", "left"),
    [
        ("Cancel all 2…", "Cancel 2 jobs", {"count": 1}),
        ("Delete all 2…", "Delete 2 jobs", {"count": 1}),
    ],
    ids=["cancel", "delete"],
)
def test_a_job_that_arrives_while_the_dialog_is_open_is_left_alone(
    place: Place, page: Page, label: str, verb: str, left: dict[str, int]
) -> None:
    job = {"queue": f"swept-{verb[:6]}", "type": "t", "payload": 1}
    for _ in range(2):
        post(place, "/jobs", job)
    go(page, place, f"jobs?f=status%3Aready%20queue%3A{job['queue']}")
    page.get_by_role("button", name=label).click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("Jobs that come later stay.")
    line = dialog.get_by_label("curl", exact=True).text_content() or ""
    found = re.search("upto=([0-9A-Z]{26})", line)
    assert found is not None
    expect(dialog.locator(".id")).to_have_attribute("title", found[1])
    post(place, "/jobs", job)
    dialog.get_by_role("button", name=verb).click()
    assert "2 jobs" in toast(page)
    assert api(place, f"/jobs/count?status=ready&queue={job['queue']}") == left


def test_a_move_to_a_queue_that_nobody_knows_is_asked_about(place: Place, page: Page) -> None:
    post(place, "/jobs", {"queue": "invoices", "type": "t", "payload": 1})
    id = post(place, "/jobs", {"queue": "misled", "type": "t", "payload": 1})["id"]
    go(page, place, f"job?id={id}")
    page.get_by_role("button", name="Move…").click()
    dialog = page.get_by_role("dialog")
    move = dialog.get_by_role("button", name="Move", exact=True)
    dialog.get_by_label("Priority").fill("urgent")
    dialog.get_by_label("Priority").blur()
    expect(dialog.locator(".error")).to_contain_text("A whole number")
    expect(move).to_be_disabled()
    dialog.get_by_label("Priority").fill("7")
    dialog.get_by_label("Queue").fill("invoces")
    asked: list[Request] = []
    page.on("request", lambda each: asked.append(each) if each.method == "PATCH" else None)
    move.click()
    expect(dialog.get_by_role("alert").first).to_contain_text("There is no queue “invoces” yet.")
    assert asked == []
    dialog.get_by_role("button", name="invoices", exact=True).click()
    move.click()
    assert toast(page).endswith("is ready in invoices.")
    moved = api(place, f"/jobs/{id}")
    assert (moved["queue"], moved["priority"]) == ("invoices", 7)


def test_a_filter_that_has_lost_its_value_never_becomes_a_request(place: Place, page: Page) -> None:
    post(place, "/jobs", {"queue": "kept", "type": "t", "payload": 1})
    go(page, place, "jobs?f=queue%3Akept")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    source = page.locator("script[src*=main]").evaluate("s => s.src.replace('main', 'actions')")
    refused = page.evaluate(
        """async (source) => {
            const { exactly, sweep } = await import(source);
            const filters = [{}, {queue: ""}, {queue: undefined}, {status: "dead", queue: " "}];
            for (const filter of filters) await sweep("delete", filter, () => undefined);
            return filters.map((filter) => {
                try { exactly(filter); return ""; } catch (error) { return error.message; }
            });
        }""",
        source,
    )
    assert all("nothing is done" in text for text in refused), refused
    assert not [url for url in asked if "preview" in url and "kept" not in url]
    expect(page.get_by_role("dialog")).to_have_count(0)


def test_a_move_of_many_says_that_it_cannot_be_undone(place: Place, page: Page) -> None:
    mixed(place, "moved", completed=1, dead=1, ready=2)
    go(page, place, "jobs?f=queue%3Amoved")
    page.get_by_role("button", name="Move 2 waiting…").click()
    expect(page.get_by_role("dialog")).to_contain_text("A move of many cannot be undone")


def test_a_sort_says_that_it_is_of_the_rows_that_are_shown(place: Place, page: Page) -> None:
    mixed(place, "sorted", completed=0, dead=1, ready=1)
    go(page, place, "jobs?f=queue%3Asorted&sort=attempts")
    foot = page.locator("main .foot").last
    expect(foot).to_contain_text("only the 2 shown are sorted by tries")
