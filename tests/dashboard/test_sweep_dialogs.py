"""The dialogs of changes by filter: they show what they would change, and change no more."""

import re
import shlex
from urllib.parse import quote

import httpx
import pytest
from click.testing import CliRunner
from playwright.sync_api import Page, expect

from zq.cli import main

from .place import Place
from .test_acting import api
from .test_pages import go


def command(page: Page) -> list[str]:
    """The words of the command that the dialog shows, but for those that name the server."""
    shown = page.get_by_role("dialog").locator("code").first.text_content() or ""
    zq, *words, flag, url = shlex.split(shown)
    assert (zq, flag) == ("zq", "--url")
    assert httpx.get(f"{url}/queues", trust_env=False).status_code == 200
    return words


def shown_to_work(place: Place, words: list[str]) -> str:
    """What a command says that ends well."""
    done = CliRunner().invoke(main, [*words, "--url", place.primary])
    assert done.exit_code == 0, done.output
    return done.stdout


def test_the_dialog_shows_a_command_that_does_the_same(
    place: Place, page: Page, ids: dict[str, str]
) -> None:
    go(page, place, "jobs?f=status%3Adead")
    page.get_by_role("button", name="Requeue all that match…").click()
    page.get_by_label("Reason").fill("it's mended")
    words = command(page)
    assert words[:4] == ["requeue", "--status", "dead", "--upto"]
    assert words[-2:] == ["--reason", "it's mended"]
    assert shown_to_work(place, words) == "3 jobs requeued\n"
    assert api(place, "/jobs/count?status=dead") == {"count": 0}


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("group:it's status:ready", ["--group", "it's", "--status", "ready"]),
        ('group:"a b" priority:3..5', ["--group", "a b", "--priority", "3..5"]),
        ("queue:narrow attempts:..0 age:<1h", ["--queue", "narrow", "--attempts", "..0"]),
        ("queue:narrow age:>0s type:t", ["--queue", "narrow", "--ready-before"]),
    ],
    ids=["nothing", "group", "young", "old"],
)
def test_the_command_of_a_dialog_means_the_jobs_that_its_filter_means(
    place: Place, page: Page, line: str, words: list[str]
) -> None:
    jobs = [
        {"queue": "narrow", "type": "t", "payload": 1, "group": "a b", "priority": 4},
        {"queue": "narrow", "type": "t", "payload": 2, "group": "c", "priority": 9},
    ]
    httpx.post(f"{place.primary}/jobs/bulk", json={"jobs": jobs}, trust_env=False)
    go(page, place, f"jobs?f={quote(line)}")
    page.get_by_role("button", name="Delete all that match…").click()
    dialog = page.get_by_role("dialog")
    found = re.search("Delete ([0-9]+) jobs", dialog.locator("h2").inner_text())
    assert found is not None
    shown = command(page)
    assert shown[: len(words) + 1] == ["delete", *words]
    count = int(found[1])
    assert shown_to_work(place, shown) == f"{count} job{'s' * (count != 1)} deleted\n"
    dialog.get_by_role("button", name="Delete").click()
    expect(dialog).to_contain_text("0 jobs are deleted.")


def test_selected_jobs_are_deleted_by_the_command_that_the_dialog_shows(
    place: Place, page: Page
) -> None:
    job = {"queue": "picked", "type": "t", "payload": 1}
    ids = [
        httpx.post(f"{place.primary}/jobs", json=job, trust_env=False).json()["id"]
        for _ in range(3)
    ]
    go(page, place, "jobs?f=queue%3Apicked")
    for id in ids[:2]:
        page.get_by_label(f"Select {id}").check()
    page.get_by_role("button", name="Delete all that match…").last.click()
    page.get_by_label("Reason").fill("a test")
    words = command(page)
    assert words[:3] == ["delete", "--id", f"{ids[1]},{ids[0]}"]
    assert shown_to_work(place, words) == "2 jobs deleted\n"
    (sweep,) = httpx.get(f"{place.primary}/sweeps/ended?limit=1", trust_env=False).json()["sweeps"]
    assert (sweep["verb"], sweep["reason"]) == ("delete", "a test")
    page.keyboard.press("Escape")
    go(page, place, f"job?id={ids[2]}")
    page.get_by_role("button", name="Delete…").click()
    words = command(page)
    assert shown_to_work(place, words) == f"{ids[2]} is deleted\n"
    assert api(place, "/jobs/count?queue=picked") == {"count": 0}


@pytest.mark.parametrize(
    ("label", "verb", "left"),
    [
        ("Cancel all that match…", "Cancel 2 jobs", {"count": 1}),
        ("Delete all that match…", "Delete 2 jobs", {"count": 1}),
    ],
    ids=["cancel", "delete"],
)
def test_a_job_that_arrives_while_the_dialog_is_open_is_left_alone(
    place: Place, page: Page, label: str, verb: str, left: dict[str, int]
) -> None:
    job = {"queue": f"swept-{verb[:6]}", "type": "t", "payload": 1}
    for _ in range(2):
        httpx.post(f"{place.primary}/jobs", json=job, trust_env=False)
    go(page, place, f"jobs?f=status%3Aready%20queue%3A{job['queue']}")
    page.get_by_role("button", name=label).click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("none that arrive later")
    found = re.search("upto=([0-9A-Z]{26})", dialog.locator("code").last.inner_text())
    assert found is not None
    expect(dialog).to_contain_text(f"up to the id {found[1]}")
    httpx.post(f"{place.primary}/jobs", json=job, trust_env=False)
    dialog.get_by_role("button", name=verb).click()
    expect(dialog).to_contain_text("2 jobs are")
    assert api(place, f"/jobs/count?status=ready&queue={job['queue']}") == left
