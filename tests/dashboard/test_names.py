"""Names that somebody has chosen badly: they stand as they are, and move nothing."""

import subprocess
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from playwright.sync_api import Page, expect

from .place import Place, serving
from .test_pages import go

LONGEST = 500
ODD = [
    "\u202e" + "gnp.exe " * 62,
    "\u2066mail\u2069" * 45,
    "\u05e9\u05dc\u05d5\u05dd" * 62,
    "\u0645\u0631\u062d\u0628\u0627 " * 45,
    "e\u0301\u0302\u0303\u0304" * 55,
    "\U0001f469\u200d\U0001f469\u200d\U0001f467" * 27,
    "\u200b" * 166,
    "line\nbreak\t" * 45,
    "\x1b\x9bred\x07" * 50,
    "<img src=x onerror=hurt=1>" * 19,
    "w" * LONGEST,
    "a." * 249,
    "\u3042" * 166,
    "\u00a0 x" * 125,
]
PAGES = (
    *("overview", "queues", "queues?tree=1", "queues?tab=types"),
    *("queue?name=mail&tab=keys", "jobs", "workers", "failures"),
)

HEADS = """() => [...document.querySelectorAll("main th[scope=col]")].map(each => {
    const { left, width } = each.getBoundingClientRect();
    return [Math.round(left), Math.round(width)];
})"""

HIDDEN = r"/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b-\u200f\u202a-\u202e\u2066-\u2069]/"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    with serving(tmp_path_factory.mktemp("names") / "data") as place:
        yield place


def store(place: Place, names: list[str]) -> None:
    """A job that waits and one that has died, of each name as queue and type, and one of each as
    fair key."""
    with httpx.Client(base_url=place.primary, trust_env=False) as http:

        def call(path: str, body: Any) -> Any:
            reply = http.post(path, json=body)
            assert reply.is_success, reply.text
            return reply.json() if reply.content else None

        jobs = [{"queue": name, "type": name, "payload": name} for name in names]
        call("/jobs/bulk", {"jobs": jobs * 2})
        shared = [{"queue": "mail", "type": "t", "payload": 1, "fair_key": n[:200]} for n in names]
        call("/jobs/bulk", {"jobs": shared})
        for name in names:
            claim = {"max": 1, "lease_ms": 60_000, "holder": "w"}
            for job in call(f"/queues/{quote(name, safe='')}/claim", claim)["jobs"]:
                failure = {"message": name, "error_type": "E", "kill": True, "lease": job["lease"]}
                call(f"/jobs/{job['id']}/failure", failure)


def test_fourteen_odd_names_change_no_column_and_hide_nothing(place: Place, page: Page) -> None:
    store(place, ["mail"])
    columns: dict[tuple[str, int], Any] = {}
    for look in range(2):
        for to in PAGES:
            go(page, place, to)
            if not to.startswith("workers"):
                expect(page.locator("main tbody tr").first).to_be_visible()
            for width in (1920, 1440, 390):
                page.set_viewport_size({"width": width, "height": 900})
                before = columns.setdefault((to, width), page.evaluate(HEADS))
                assert page.evaluate(HEADS) == before, (to, width, look)
                over = page.evaluate("document.documentElement.scrollWidth")
                assert over <= width, (to, width, look)
                hidden = page.evaluate(f"document.body.innerText.match({HIDDEN})")
                assert hidden is None, (to, hidden)
        if not look:
            store(place, ODD)
    assert page.evaluate("window.hurt") is None


def test_dialogs_and_messages_hide_nothing_of_a_name(place: Place, page: Page) -> None:
    name = "x\u202ey"
    shown = "x\\u202ey"
    jobs = [{"queue": name, "type": "t", "payload": n} for n in range(2)]
    stored = httpx.post(f"{place.primary}/jobs/bulk", json={"jobs": jobs}, trust_env=False)
    assert stored.is_success
    dialog = page.get_by_role("dialog")
    go(page, place, f"jobs?f={quote('queue:' + name)}")
    page.get_by_role("button", name="Cancel all 2…").click()
    expect(dialog.get_by_role("heading")).to_have_text(f"Cancel 2 jobs of {shown}?")
    dialog.get_by_text("The same as a command").click()
    zq = dialog.get_by_label("zq", exact=True)
    expect(zq).to_contain_text(f"--queue $'{shown}'")
    line = f"printf %s {(zq.text_content() or '').split('--queue ')[1].split(' --')[0]}"
    assert subprocess.run(["bash", "-c", line], capture_output=True).stdout.decode() == name
    assert page.evaluate(f"document.body.innerText.match({HIDDEN})") is None
    dialog.get_by_role("button", name="Cancel 2 jobs").click()
    expect(page.locator(".toast")).to_contain_text(f"2 jobs of {shown} are cancelled.")
    go(page, place, f"queue?name={quote(name)}")
    page.get_by_role("button", name="Pause…").click()
    expect(dialog.get_by_role("heading")).to_have_text(f"Pause {shown}")
    assert page.evaluate(f"document.body.innerText.match({HIDDEN})") is None
