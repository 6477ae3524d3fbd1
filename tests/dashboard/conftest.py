"""One server for a module, and one browser for all modules of a worker."""

import asyncio
from collections.abc import Callable, Iterator

import headless
import pytest
from conformance.streams import PATIENCE_S
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

from .place import Place, seed, serving

PATIENCE_MS = PATIENCE_S * 1000
"""How long a page may take: a busy machine draws late, and some answers last for half a minute."""

expect.set_options(timeout=PATIENCE_MS)

NewPage = Callable[..., Page]

LONGER = """const timeout = window.setTimeout;
window.setTimeout = (act, ms, ...more) => timeout(act, ms >= 8000 ? 10 * ms : ms, ...more);"""
"""What goes after a while, such as what the page says to have done, stays until a test reads it."""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    told_apart = ("--ui-environment", "production", "--device", "edge-07")
    with serving(tmp_path_factory.mktemp("dashboard") / "data", *told_apart) as place:
        yield place


@pytest.fixture(scope="module")
def ids(place: Place) -> dict[str, str]:
    return seed(place.primary)


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    """A browser that is started once, which costs as much as to look at four pages."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=headless.browser(), args=headless.FLAGS
        )
        loop = asyncio.get_running_loop()
        asyncio._set_running_loop(None)
        yield browser
        asyncio._set_running_loop(loop)
        browser.close()


@pytest.fixture(scope="module")
def browser(chromium: Browser) -> Iterator[Browser]:
    """The browser, whose event loop counts as running between the calls of this module alone.

    Tests of other modules could not run loops of their own otherwise.
    """
    asyncio._set_running_loop(chromium._loop)
    yield chromium
    asyncio._set_running_loop(None)


def patient(context: BrowserContext) -> BrowserContext:
    """A context whose pages wait for as long as a busy machine needs."""
    context.set_default_timeout(PATIENCE_MS)
    context.add_init_script(LONGER)
    return context


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    context = patient(browser.new_context(viewport={"width": 1440, "height": 900}))
    yield context
    context.close()


def complaining(page: Page) -> list[str]:
    """What the page complains of, from now on."""
    complaints: list[str] = []
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("console", lambda said: complaints.append(said.text) if said.type == "error" else None)
    return complaints


def unexpected(complaints: list[str]) -> list[str]:
    # A server that was stopped, or that refuses, is not the page's fault.
    expected = ("net::ERR", "Failed to load resource")
    return [text for text in complaints if not any(e in text for e in expected)]


@pytest.fixture
def fresh_page(context: BrowserContext) -> Iterator[Page]:
    """A page of its own, which must not complain."""
    page = context.new_page()
    complaints = complaining(page)
    yield page
    assert unexpected(complaints) == []


@pytest.fixture
def page(fresh_page: Page) -> Page:
    """The page of a test. Files whose tests can share one have `same_page` instead."""
    return fresh_page


@pytest.fixture(scope="module")
def kept(browser: Browser) -> Iterator[tuple[Page, list[str]]]:
    """A page, and what it complains of."""
    context = patient(browser.new_context(viewport={"width": 1440, "height": 900}))
    page = context.new_page()
    yield page, complaining(page)
    context.close()


LEAVE = """() => {
    localStorage.clear();
    document.querySelectorAll("dialog[open]").forEach(each => each.close());
    document.querySelectorAll(":popover-open").forEach(each => each.hidePopover());
    document.querySelector("#toasts").replaceChildren();
    document.getSelection().empty();
    document.activeElement.blur();
    location.hash = "#/nowhere";
}"""


@pytest.fixture
def same_page(kept: tuple[Page, list[str]]) -> Iterator[Page]:
    """The page of all tests of a file, which must not complain: a load costs as much as five
    places of a page that is there. Nobody may change here how the page shows what it shows.
    """
    page, complaints = kept
    complaints.clear()
    yield page
    page.unroute_all()
    page.mouse.move(0, 0)
    page.evaluate(LEAVE)
    assert unexpected(complaints) == []


@pytest.fixture
def new_page(browser: Browser) -> Iterator[NewPage]:
    """Open a page in a context of its own, with these options. It may complain."""
    contexts: list[BrowserContext] = []

    def opened(**options: object) -> Page:
        contexts.append(patient(browser.new_context(**options)))  # type: ignore[arg-type]
        return contexts[-1].new_page()

    yield opened
    for each in contexts:
        each.close()
