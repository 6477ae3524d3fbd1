"""The documents as a site: its links hold, and it asks nobody else for anything."""

import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import headless
import pytest
from conformance.streams import PATIENCE_S
from documents import ROOT, commands
from playwright.sync_api import sync_playwright

BUILD, _SERVE = commands("site")[0].splitlines()


def build(top: Path, site: Path) -> subprocess.CompletedProcess[str]:
    """Build the site of the documents below `top`, by the command of the documents."""
    program, *words = BUILD.split()
    assert program == ".venv/bin/mkdocs"
    return subprocess.run(
        [sys.executable, "-m", "mkdocs", *words, "--site-dir", site],
        cwd=top,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
    )


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("site")
    done = build(ROOT, place)
    assert done.returncode == 0, done.stderr
    return place


def test_each_page_is_there_and_in_the_navigation(site: Path) -> None:
    start = (site / "docs" / "start.html").read_text("utf-8")
    for page in (ROOT / "docs").glob("*.md"):
        name = "index.html" if page.stem == "README" else f"{page.stem}.html"
        assert (site / "docs" / name).exists()
        assert f'href="{name}"' in start or page.stem == "start"


def test_code_tables_and_lists_are_no_text(site: Path) -> None:
    # What MkDocs does not understand as GitHub does comes out as it was written.
    for page in site.rglob("*.html"):
        text = page.read_text("utf-8")
        assert "```" not in text, page
        assert not re.search(r"^(?:- |\d+\. |\|)", re.sub(r"(?s)<pre.*?</pre>", "", text), re.M), (
            page
        )


def test_what_is_broken_fails_the_build(tmp_path: Path) -> None:
    """A link that leads nowhere, one to a missing part of a page, and a page outside of it all."""
    docs = tmp_path / "top" / "docs"
    shutil.copytree(ROOT / "docs" / "site", docs / "site")
    settings = docs / "site" / "mkdocs.yml"
    settings.write_text(
        re.sub(r"(?ms)^nav:.*", "nav: [docs/start.md]", settings.read_text("utf-8"))
    )
    (docs / "start.md").write_text("# Start\n")
    (docs / "lost.md").write_text("# Lost\n\n[a](nowhere.md) [b](start.md#no-such-part)\n")
    done = build(docs.parent, tmp_path / "site")
    assert (done.returncode, done.stderr.count("WARNING")) == (1, 3)
    for complaint in ("nowhere.md", "#no-such-part", 'not included in the "nav"'):
        assert complaint in done.stderr


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    handler = partial(SimpleHTTPRequestHandler, directory=str(site))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


def test_the_site_asks_nobody_else(address: str) -> None:
    asked: list[str] = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=headless.browser(), args=headless.FLAGS
        )
        page = browser.new_page()
        page.set_default_timeout(PATIENCE_S * 1000)
        page.on("request", lambda request: asked.append(request.url))
        for path in ("index.html", "docs/promises.html", "docs/dashboard.html"):
            page.goto(address + path, wait_until="networkidle")
        page.keyboard.press("/")
        page.locator("input[name=query]").press_sequentially("dead-letter")
        page.locator(".md-search-result__link").first.wait_for()
        browser.close()
    assert len(asked) > 10
    assert [url for url in asked if not url.startswith((address, "data:", "blob:"))] == []
