"""`python -m dashboard.screenshots [FOLDER] [NAME…]`, in `tests`: a picture of each page.

The server of the pictures has had a bad night. Each page is taken at three widths and in two
themes. In `docs/images` are those of the documentation: the middle width, as JPEG.
"""

import sys
import tempfile
import time
from pathlib import Path

import headless
import httpx
from playwright.sync_api import Browser, expect, sync_playwright

from .place import Place, serving
from .story import remember, tell, workers
from .test_pages import go

PICTURES = Path(__file__).parent.parent.parent / "docs" / "images"
QUALITY = 60
"""Of JPEG: the files are part of the repository."""

WIDTHS = (1440, 900, 390)
THEMES = ("light", "dark")

SHOTS = {
    "overview": "overview",
    "queues": "queues",
    "queue": "queue?name=search.index",
    "queue-types": "queue?name=mail&tab=types",
    "queue-workers": "queue?name=search.index&tab=workers",
    "queue-settings": "queue?name=search.index&tab=settings",
    "queue-schema": "queue?name=mail&tab=schema",
    "queue-groups": "queue?name=mail&tab=groups",
    "queue-keys": "queue?name=exports&tab=keys",
    "queue-enqueue": "queue?name=mail&tab=enqueue",
    "budgets": "queues?tab=budgets",
    "producers": "queues?tab=producers",
    "jobs": "jobs?f=status%3Adead%20queue%3Asms",
    "jobs-panel": "jobs?f=status%3Adead%20queue%3Asms&job={dead}",
    "job": "job?id={dead}",
    "failures": "failures",
    "schedules": "schedules",
    "workers": "workers",
    "devices": "devices",
    "activity": "activity",
    "health": "health",
    "nowhere": "queue",
}


def main(folder: Path = PICTURES, *names: str) -> None:
    """Start a server with the story, and take a picture of each page."""
    folder.mkdir(exist_ok=True)
    flags = ("--ui-environment", "production", "--device", "edge-07")
    with (
        tempfile.TemporaryDirectory() as root,
        serving(Path(root) / "data", *flags) as place,
        sync_playwright() as playwright,
    ):
        tell(place)
        remember(Path(root) / "data" / "zq.db")
        browser = playwright.chromium.launch(
            executable_path=headless.browser(), args=headless.FLAGS
        )
        with workers(place):
            wait_until_it_is_bad(place)
            dead = httpx.get(
                f"{place.primary}/jobs?queue=sms&status=dead&limit=1", trust_env=False
            ).json()["jobs"][0]["id"]
            shots = {name: to.format(dead=dead) for name, to in SHOTS.items()}
            if folder == PICTURES:
                text = (PICTURES.parent / "dashboard.md").read_text()
                names = tuple(name for name in shots if f"images/{name}-" in text)
            chosen = {name: to for name, to in shots.items() if not names or name in names}
            for theme in THEMES:
                for width in WIDTHS if folder != PICTURES else WIDTHS[1:2]:
                    take(browser, place, chosen, folder, width, theme)
        browser.close()


def wait_until_it_is_bad(place: Place) -> None:
    """That nobody takes the jobs of a queue is said after a minute."""
    while True:
        found = httpx.get(f"{place.ui}look?topic=overview", trust_env=False).json()["full"]
        if any(finding["code"] == "no_worker" for finding in found["findings"]):
            return
        time.sleep(1)


def take(
    browser: Browser, place: Place, shots: dict[str, str], folder: Path, width: int, theme: str
) -> None:
    """A picture of each page at one width in one theme."""
    page = browser.new_page(
        viewport={"width": width, "height": 900},
        color_scheme="dark" if theme == "dark" else "light",
    )
    page.on("pageerror", lambda error: print(f"{page.url}: {error}"))
    for name, to in shots.items():
        go(page, place, to)
        if page.locator("figure.chart").count():
            expect(page.locator("figure.chart path.ln").first).to_be_attached()
        if folder == PICTURES:
            path = folder / f"{name}-{theme}.jpg"
            page.screenshot(path=path, type="jpeg", quality=QUALITY)
        else:
            page.screenshot(path=folder / f"{name}-{width}-{theme}.png")
    page.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]) if sys.argv[1:] else PICTURES, *sys.argv[2:])
