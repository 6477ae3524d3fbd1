"""Make the pictures of docs/dashboard.md: `cd tests && python -m dashboard.screenshots`."""

import shutil
import tempfile
from pathlib import Path

from playwright.sync_api import expect, sync_playwright

from .place import seed, serving

PICTURES = Path(__file__).parent.parent.parent / "docs" / "images"
SHOTS = {
    "overview-light": ("overview", "light"),
    "overview-dark": ("overview", "dark"),
    "queue-config": ("queue?name=mail&tab=Config", "light"),
    "job": ("job?id={dead}", "light"),
}


def main() -> None:
    """Start a server with jobs in every status, and take a picture of some pages."""
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
        for name, (to, theme) in SHOTS.items():
            page = browser.new_page(
                viewport={"width": 1000, "height": 640},
                color_scheme="dark" if theme == "dark" else "light",
            )
            page.goto(f"{place.ui}#/{to.format(**ids)}")
            expect(page.locator("#live")).to_have_text("live")
            expect(page.locator("[aria-busy]")).to_have_count(0)
            page.screenshot(path=PICTURES / f"{name}.png")
            page.close()
        browser.close()


if __name__ == "__main__":
    main()
