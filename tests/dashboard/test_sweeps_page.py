"""Activity: sweeps that run and have ended, and taking back a cancellation."""

import contextlib
import re
import threading
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from axe_playwright_python.base import AXE_SCRIPT
from conformance.streams import PATIENCE_S
from crash.disk import Disk, compile_library, new_disk
from playwright.sync_api import Page, expect

from .conftest import NewPage
from .place import Place, serving, until
from .test_acting import api, toast
from .test_pages import faults, go


@pytest.fixture(scope="module")
def disk(tmp_path_factory: pytest.TempPathFactory) -> Disk:
    """The disk of the server."""
    folder = tmp_path_factory.mktemp("sweeps")
    return new_disk(compile_library(folder, "disk"), folder)


@pytest.fixture(scope="module")
def place(disk: Disk) -> Iterator[Place]:
    with serving(disk.root, env=disk.environment()) as place:
        yield place


@pytest.fixture
def page(same_page: Page) -> Page:
    """One page for all of this file."""
    return same_page


SLICE, BULK = 1_000, 10_000
MANY = 20 * SLICE
"""Jobs that a sweep changes in twenty slices."""
SLICE_S = 5


@contextlib.contextmanager
def slowly(disk: Disk) -> Iterator[None]:
    """A slice of a sweep takes seconds within the context, and its last slices are not stored.

    Who reads waits until a slice is stored, so not all may wait for the end of the context.
    """
    is_over = threading.Event()

    def let_some_through() -> None:
        for _ in range(MANY // SLICE - 2):
            if is_over.wait(SLICE_S):
                break
            disk.let_through()

    lets_through = threading.Thread(target=let_some_through)
    with disk.held():
        lets_through.start()
        try:
            yield
        finally:
            is_over.set()
            lets_through.join()


def call(place: Place, method: str, path: str, body: Any = None) -> Any:
    # The answer about a sweep waits for its end, which a test puts off.
    patience = httpx.Timeout(PATIENCE_S, read=None)
    reply = httpx.request(
        method, f"{place.primary}{path}", json=body, timeout=patience, trust_env=False
    )
    assert reply.is_success, reply.text
    return reply.json()


def fill(place: Place, queue: str, count: int) -> list[str]:
    jobs = [{"queue": queue, "type": "t", "payload": n} for n in range(count)]
    return [job["id"] for job in call(place, "POST", "/jobs/bulk", {"jobs": jobs})["jobs"]]


def running(place: Place) -> str:
    """The id of the sweep that runs, once there is one."""
    until(lambda: call(place, "GET", "/sweeps")["sweeps"])
    (sweep,) = call(place, "GET", "/sweeps")["sweeps"]
    id: str = sweep["id"]
    return id


def test_a_sweep_that_runs_is_shown_with_its_progress_and_can_be_stopped(
    place: Place, disk: Disk, page: Page
) -> None:
    for _ in range(MANY // BULK):
        fill(place, "slow", BULK)
    seen = call(place, "GET", "/sweeps/preview?verb=cancel&queue=slow")
    bound = f"/jobs/cancel?queue=slow&reason=too+many&upto={seen['upto']}"
    answers: list[Any] = []
    sent = threading.Thread(target=lambda: answers.append(call(place, "POST", bound)))
    with slowly(disk):
        sent.start()
        id = running(place)
        go(page, place, "activity")
        row = page.get_by_role("table", name="Changes under way").locator("tbody tr")
        expect(row).to_contain_text(re.compile(r"\d of 20,000"))
        expect(row.get_by_role("img", name=re.compile(r"\d+ %"))).to_be_attached()
        row.get_by_role("button", name=f"Stop sweep {id}").click()
        dialog = page.get_by_role("dialog")
        expect(dialog.get_by_label("zq", exact=True)).to_contain_text(f"zq sweeps stop {id}")
        line = f"curl -X DELETE {place.ui}api/sweeps/{id}"
        expect(dialog.get_by_label("curl", exact=True)).to_contain_text(line)
        with page.expect_request(lambda request: request.method == "DELETE"):
            dialog.get_by_role("button", name="Stop it").click()
        assert toast(page).startswith("The sweep stops")
    sent.join()
    assert answers[0]["cancelled"] < MANY
    expect(page.get_by_role("table", name="Changes under way")).to_have_count(0)


def test_a_cancellation_is_taken_back_by_the_page_and_no_other_one(
    place: Place, page: Page
) -> None:
    by_hand, *others = fill(place, "wrong", 3)
    call(place, "POST", f"/jobs/{by_hand}/cancel", {})
    go(page, place, "jobs?f=status%3Aready%20queue%3Awrong")
    page.get_by_role("button", name="Cancel all 2…").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Reason").fill("wrong queue")
    shown = dialog.get_by_label("zq", exact=True)
    expect(shown).to_contain_text("zq cancel --status ready --queue wrong --upto ")
    expect(dialog.get_by_label("curl", exact=True)).to_contain_text("reason=wrong%20queue")
    dialog.get_by_role("button", name="Cancel 2 jobs").click()
    assert toast(page) == "2 jobs of wrong are cancelled."
    page.get_by_role("navigation", name="Pages").get_by_role("link", name="Activity").click()
    ended = page.get_by_role("table", name="Sweeps that have changed jobs, the latest first")
    row = ended.locator("tr", has_text="wrong queue")
    expect(row).to_contain_text("done")
    sweep = row.get_attribute("data-key") or ""
    row.get_by_role("button", name=f"Undo sweep {sweep}").click()
    expect(dialog).to_contain_text("2 of them are still there")
    dialog.get_by_label("Reason").fill("my mistake")
    expect(shown).to_contain_text(f"zq sweeps undo {sweep} --yes --reason 'my mistake'")
    line = f"api/sweeps/{sweep}/undo?reason=my%20mistake"
    expect(dialog.get_by_label("curl", exact=True)).to_contain_text(line)
    dialog.get_by_role("button", name="Take 2 jobs back").click()
    assert toast(page) == "2 jobs wait again."
    expect(row).to_contain_text("undone")
    expect(ended.locator("tr", has_text="my mistake")).to_contain_text("undo")
    assert {api(place, f"/jobs/{id}")["status"] for id in others} == {"ready"}
    assert api(place, f"/jobs/{by_hand}")["status"] == "cancelled"


def test_a_cancellation_of_one_job_is_taken_back_by_its_toast_or_in_activity(
    place: Place, page: Page
) -> None:
    first, second = fill(place, "mistaken", 2)
    go(page, place, "jobs?f=queue%3Amistaken")
    # By mouse: the row and its toast.
    row = page.locator(f"tr[data-key='{first}']")
    row.get_by_role("button", name=re.compile("^Cancel")).click()
    expect(row.locator(".pill")).to_have_text("cancelled")
    page.locator(".toast").get_by_role("button", name="Undo").click()
    assert toast(page) == "1 job waits again."
    assert api(place, f"/jobs/{first}")["status"] == "ready"
    # By keyboard; later, the page Activity still has the way back.
    page.locator(f"tr[data-key='{second}'] th a").focus()
    page.keyboard.press("c")
    expect(page.locator(".toast")).to_contain_text("is cancelled.")
    page.keyboard.press("g")
    page.keyboard.press("a")
    done = page.get_by_role("region", name="What was done")
    done.get_by_role("button", name=re.compile("^Undo ")).first.click()
    page.get_by_role("dialog").get_by_role("button", name="Take 1 jobs back").click()
    expect(page.locator(".toast").last).to_contain_text("1 jobs wait again.")
    assert api(place, f"/jobs/{second}")["status"] == "ready"


def test_an_undo_that_finds_nothing_says_so_in_the_dialog(place: Place, page: Page) -> None:
    (only,) = fill(place, "gone", 1)
    call(place, "POST", "/jobs/cancel?queue=gone", {})
    call_delete(place, only)
    sweep = call(place, "GET", "/sweeps/ended?limit=1")["sweeps"][0]["id"]
    go(page, place, "activity")
    page.get_by_role("button", name=f"Undo sweep {sweep}", exact=True).click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("button", name="Take 0 jobs back").click()
    expect(dialog.get_by_role("alert")).to_contain_text("Refused: none of the 1 jobs")
    expect(dialog.get_by_role("alert")).to_contain_text("enqueue them again")
    expect(page.locator(".toast")).to_have_count(0)


def call_delete(place: Place, id: str) -> None:
    assert httpx.delete(f"{place.primary}/jobs/{id}", trust_env=False).status_code == 204


def test_the_page_has_no_fault_of_access_while_a_sweep_runs(
    place: Place, disk: Disk, new_page: NewPage
) -> None:
    for _ in range(MANY // BULK):
        fill(place, "seen", BULK)
    page = new_page(reduced_motion="reduce")
    page.goto(place.ui)
    page.evaluate(AXE_SCRIPT)
    sent = threading.Thread(target=lambda: call(place, "POST", "/jobs/cancel?queue=seen", {}))
    with slowly(disk):
        sent.start()
        running(place)
        go(page, place, "activity")
        expect(page.get_by_role("table", name="Changes under way")).to_be_visible()
        # It stays, though the sweep may end.
        page.keyboard.press("p")
        assert faults(page, (1440, 320)) == []
    sent.join()
