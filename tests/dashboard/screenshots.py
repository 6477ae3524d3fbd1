"""Make the pictures of docs/dashboard.md: `cd tests && python -m dashboard.screenshots`."""

import shutil
import tempfile
from pathlib import Path

from playwright.sync_api import Browser, expect, sync_playwright

from .place import Place, seed, serving

PICTURES = Path(__file__).parent.parent.parent / "docs" / "images"
QUALITY = 60
"""Of JPEG: the files are part of the repository."""

SHOTS = {
    "overview": "overview",
    "queues": "queues",
    "queue": "queue?name=died",
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
}


def main() -> None:
    """Start a server with jobs in every status, and take a picture of each page in each theme."""
    PICTURES.mkdir(exist_ok=True)
    with (
        tempfile.TemporaryDirectory() as root,
        serving(Path(root) / "data") as place,
        sync_playwright() as playwright,
    ):
        ids = seed(place.primary)
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        for theme in ("light", "dark"):
            take(browser, place, ids, theme)
        browser.close()


def take(browser: Browser, place: Place, ids: dict[str, str], theme: str) -> None:
    """A picture of each page in one theme."""
    page = browser.new_page(
        viewport={"width": 900, "height": 560},
        color_scheme="dark" if theme == "dark" else "light",
    )
    for name, to in SHOTS.items():
        page.goto(f"{place.ui}#/{to.format(**ids)}")
        expect(page.locator("#live")).to_have_text("live")
        expect(page.locator("[aria-busy]")).to_have_count(0)
        path = PICTURES / f"{name}-{theme}.jpg"
        page.screenshot(path=path, type="jpeg", quality=QUALITY)
    page.close()


if __name__ == "__main__":
    main()
