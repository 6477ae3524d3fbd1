"""Make the pictures of docs/dashboard.md: `cd tests && python -m dashboard.screenshots`."""

import json
import math
import shutil
import sqlite3
import tempfile
import time
from contextlib import closing
from pathlib import Path

import httpx
from playwright.sync_api import Browser, expect, sync_playwright

from .place import Place, seed, serving

PICTURES = Path(__file__).parent.parent.parent / "docs" / "images"
QUALITY = 60
"""Of JPEG: the files are part of the repository."""

SHOTS = {
    "overview": "overview",
    "queues": "queues",
    "queue": "queue?name=died",
    "queue-rates": "queue?name=mail&tab=Rates",
    "queue-workers": "queue?name=mail&tab=Workers",
    "queue-config": "queue?name=mail&tab=Config",
    "queue-enqueue": "queue?name=mail&tab=Enqueue",
    "jobs": "jobs?f=status%3Adead",
    "job": "job?id={dead}",
    "failures": "failures",
    "schedules": "schedules",
    "workers": "workers",
    "budgets": "budgets",
    "sweeps": "sweeps",
    "health": "health",
    "audit": "audit",
}


def main() -> None:
    """Start a server with jobs in every status, and take a picture of each page in each theme."""
    PICTURES.mkdir(exist_ok=True)
    with (
        tempfile.TemporaryDirectory() as root,
        serving(Path(root) / "data", "--ui-environment", "staging", "--device", "edge-07") as place,
        sync_playwright() as playwright,
    ):
        ids = seed(place.primary)
        act(place)
        remember(Path(root) / "data" / "zq.db")
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        for theme in ("light", "dark"):
            take(browser, place, ids, theme)
        browser.close()


def act(place: Place) -> None:
    """What an operator has done: it stands in the audit, and among the sweeps."""
    jobs = [{"queue": "newsletter", "type": "send", "payload": n} for n in range(40)]
    httpx.post(f"{place.primary}/jobs/bulk", json={"jobs": jobs}, trust_env=False)
    with httpx.Client(base_url=f"{place.ui}api/", trust_env=False) as http:
        http.patch("queues/held/settings", json={"paused": True, "pause_reason": "migration"})
        wanted = {"queue": "newsletter", "status": "ready", "verb": "cancel"}
        seen = http.get("sweeps/preview", params=wanted).json()
        bound = {"queue": "newsletter", "status": "ready", "upto": seen["upto"]}
        done = http.post("jobs/cancel", params=bound | {"reason": "sent twice"}, json={})
        assert done.is_success, done.text


def remember(database: Path) -> None:
    """An hour of traffic: nobody waits for that."""
    now = int(time.time() * 1000)
    rows = [
        (queue, now - now % 60_000 - minute * 60_000, n, n, n - n // 20, n // 20, 0)
        for queue, busy in (("", 90), ("mail", 60), ("died", 20), ("done", 30))
        for minute in range(1, 60)
        for n in [round(busy * (1.3 + math.sin(minute / 6 + busy)))]
    ]
    times = json.dumps({"7": 40, "9": 9, "12": 1})
    with closing(sqlite3.connect(database, isolation_level=None)) as db:
        db.executemany(
            "INSERT INTO trends (length, queue, at, enqueued, delivered, completed, failed, died,"
            f" expired, wait, run) VALUES (60000, ?, ?, ?, ?, ?, ?, ?, 0, '{times}', '{times}')",
            rows,
        )


def take(browser: Browser, place: Place, ids: dict[str, str], theme: str) -> None:
    """A picture of each page in one theme."""
    page = browser.new_page(
        viewport={"width": 980, "height": 600},
        color_scheme="dark" if theme == "dark" else "light",
    )
    for name, to in SHOTS.items():
        page.goto(f"{place.ui}#/{to.format(**ids)}")
        expect(page.locator("#live")).to_have_text("live")
        expect(page.locator("[aria-busy]")).to_have_count(0)
        if "queues" in name or name == "overview":
            expect(page.locator("polyline").first).to_be_attached()
        path = PICTURES / f"{name}-{theme}.jpg"
        page.screenshot(path=path, type="jpeg", quality=QUALITY)
    page.close()


if __name__ == "__main__":
    main()
