"""Each page in a real browser, on a real server with jobs in every status."""

import re
from urllib.parse import urlsplit

import pytest
from axe_playwright_python.base import AXE_SCRIPT
from playwright.sync_api import Page, Request, expect

from .conftest import NewPage
from .place import Place

PAGES = {
    "overview": "overview",
    "queues": "queues",
    "queue jobs": "queue?name=mail",
    "queue types": "queue?name=mail&tab=types",
    "queue workers": "queue?name=mail&tab=workers",
    "queue settings": "queue?name=mail&tab=settings",
    "queue schema": "queue?name=mail&tab=schema",
    "queue groups": "queue?name=mail&tab=groups",
    "queue keys": "queue?name=mail&tab=keys",
    "queue enqueue": "queue?name=mail&tab=enqueue",
    "jobs": "jobs?f=status%3Adead",
    "failures": "failures",
    "schedules": "schedules",
    "workers": "workers",
    "types": "queues?tab=types",
    "budgets": "queues?tab=budgets",
    "producers": "queues?tab=producers",
    "health": "health",
    "activity": "activity",
    "devices": "devices",
    "device": "devices?name=edge-1",
}


def go(page: Page, place: Place, to: str = "overview") -> None:
    """Open a page, and wait until it is live and complete."""
    page.goto(f"{place.ui}#/{to}")
    complete(page, urlsplit(page.url).fragment)


def complete(page: Page, place: str) -> None:
    """Wait until the page of this address is live and complete. At first, the one before stays."""
    expect(page.locator("#main")).to_have_attribute("data-place", f"#{place}")
    expect(page.locator("#live")).to_have_text("live")
    expect(page.locator("[aria-busy]")).to_have_count(0)


@pytest.fixture
def page(same_page: Page) -> Page:
    """One page for all of this file, but for what a load costs."""
    return same_page


WIDTHS = (1920, 1440, 768, 320)

OF_COLOURS = ("color-contrast", "link-in-text-block")
"""The rules that look at colours. They cost three times what all others cost."""

ALL_BUT_COLOURS = {"rules": {rule: {"enabled": False} for rule in OF_COLOURS}}
OF_LAYOUT = {"runOnly": ["scrollable-region-focusable"]}
"""The rule for what shows and has its room. All others ask what is there, and whether it shows."""

AXE = """([on, options]) => axe.run(on, { resultTypes: ["violations"], ...options })
    .then(found => found.violations.map(
        each => `${each.id}: ${each.nodes.map(node => node.target).join(", ")}`))"""

COLOURS = """async ([on, theme, rules]) => {
    const passed = window.passed ??= new Set();
    const grounds = new Map([[null, theme]]);
    const ground = node => {
        if (!grounds.has(node)) {
            const { backgroundColor, backgroundImage, opacity } = getComputedStyle(node);
            const own = [backgroundColor, backgroundImage, opacity].join(" ");
            const under = ground(node.parentElement);
            grounds.set(node, own === "rgba(0, 0, 0, 0) none 1" ? under : `${under}; ${own}`);
        }
        return grounds.get(node);
    };
    const look = node => {
        const { color, fontSize, fontWeight, textDecorationLine } = getComputedStyle(node);
        const beside = getComputedStyle(node.parentElement).color;
        return [ground(node), color, fontSize, fontWeight, textDecorationLine, beside].join("; ");
    };
    // A node includes all that is in it, so none is looked at for the space between its elements.
    const isText = node => node.matches("input, select, textarea")
        || [...node.childNodes].some(
            each => each.nodeType === Node.TEXT_NODE && each.data.trim());
    const shows = node => node.checkVisibility() && !node.closest(".spoken, [aria-hidden=true]");
    const include = [...document.querySelectorAll(`${on} *`)]
        .filter(node => isText(node) && shows(node) && !passed.has(look(node)));
    if (!include.length) return [];
    const found = await axe.run({ include },
        { runOnly: rules, resultTypes: ["violations", "passes"], elementRef: true });
    for (const rule of found.passes.filter(each => each.id === "color-contrast")) {
        for (const node of rule.nodes) passed.add(look(node.element));
    }
    return found.violations.map(each =>
        `${theme} ${each.id}: ${each.nodes.map(node => node.target).join(", ")}`);
}"""
"""Look at the colours of a theme, except for text that looks as text of this document that has
passed: in colours, in size, and in all that lies under it. Text that is there for eyes or for
readers of a screen alone has no colours by the rules.
"""


def faults(page: Page, widths: tuple[int, ...], on: str = "html") -> list[str]:
    """What is wrong at these widths, in their order, on a page that has the script of axe: what
    axe finds within an element, and whether the page is wider than its window.

    The themes differ in nothing but colours, and the colours of a page do not depend on its width:
    they are looked at in both themes, and at one width of many. What a narrow page shows, a wider
    one shows too, and the narrowest shows the least: all other rules are for these two, and
    between them nothing is left but the room of what is shown.
    """
    found: list[str] = []
    for width in widths:
        page.set_viewport_size({"width": width, "height": 900})
        whole = page.evaluate("document.documentElement.scrollWidth")
        found += [f"{width}: the page has {whole}"] if whole > width else []
        ends = width in (widths[0], widths[-1])
        at = page.evaluate(AXE, [on, ALL_BUT_COLOURS if ends else OF_LAYOUT])
        if width == max(widths):
            for theme in ("light", "dark"):
                page.emulate_media(color_scheme=theme)
                at += page.evaluate(COLOURS, [on, theme, OF_COLOURS])
            page.emulate_media(color_scheme="light")
        found += [f"{width}: {each}" for each in at]
    return found


def test_no_page_has_a_fault_of_access_at_any_width(
    place: Place, ids: dict[str, str], new_page: NewPage
) -> None:
    # A colour that changes slowly would be looked at on its way to the other theme.
    page = new_page(reduced_motion="reduce")
    said: list[str] = []
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("console", lambda line: said.append(f"{line.text} {line.location['url']}"))
    page.on("request", lambda request: said.append(request.url))
    page.goto(place.ui)
    # It stays, since another place of the page is no other document.
    page.evaluate(AXE_SCRIPT)
    widths = WIDTHS
    for name, to in {**PAGES, "job": f"job?id={ids['dead']}"}.items():
        go(page, place, to)
        assert faults(page, widths) == [], name
        # The next page is opened at the width that this one ends with.
        widths = widths[::-1]
    page.close()
    # A queue without a schema is told so by a 404, which browsers note.
    known = (
        place.ui,
        "data:",
        "Failed to load resource: the server responded with a status of 404",
    )
    assert [each for each in said if not each.startswith(known)] == []


NOWHERE = {
    "__proto__": "“__proto__” is none of the pages",
    "constructor": "There is no such page",
    "queue": "This address names no queue",
    "queue?name=": "This address names no queue",
    "queue?tab=jobs": "This address names no queue",
}


def test_an_address_that_leads_nowhere_is_a_page_that_says_so_and_offers_nothing_else(
    place: Place, ids: dict[str, str], page: Page
) -> None:
    for address, said in NOWHERE.items():
        go(page, place)
        page.goto(f"{place.ui}#/{address}")
        expect(page.locator("main .empty")).to_contain_text(said)
        expect(page.locator("main button")).to_have_count(0)
        expect(page.locator("main a")).to_have_count(1)
        expect(page.locator("main[aria-busy]")).to_have_count(0)


def test_the_first_load_is_small_and_asks_nobody_else(
    place: Place, ids: dict[str, str], fresh_page: Page
) -> None:
    page = fresh_page
    asked: list[Request] = []
    page.on("request", lambda request: asked.append(request))
    page.goto(place.ui)
    expect(page.locator("#live")).to_have_text("live")
    expect(page.locator(".findings li").first).to_be_visible()
    asked = [request for request in asked if not request.url.startswith("data:")]
    assert all(request.url.startswith(place.ui) for request in asked)
    live = [request for request in asked if "/ui/live" in request.url]
    # A server that says nothing for five seconds is asked for its numbers besides.
    silent = [request for request in asked if "/ui/look" in request.url]
    whole = [request for request in asked if request not in live + silent]
    assert len(whole) <= 11, [request.url for request in whole]
    assert len(live) == 1 or silent
    assert sum(each.sizes()["responseBodySize"] for each in whole) <= 45 * 1024


# What operators of queue-ti look for.


WORDS = {
    "ready": "ready",
    "in_flight": "in flight",
    "dead": "dead",
    "expired": "expired",
    "completed": "completed",
    "cancelled": "cancelled",
    "scheduled": "scheduled",
}


def test_a_status_is_a_word_and_a_shape(place: Place, ids: dict[str, str], page: Page) -> None:
    for status, word in WORDS.items():
        go(page, place, f"job?id={ids[status]}")
        pill = page.locator(f"main .pill[data-status={status}]").first
        expect(pill).to_have_text(word)
        expect(pill.locator("svg[aria-hidden]")).to_have_count(1)


# What is on a page


def test_a_server_that_forwards_shows_its_own_lanes(place: Place, page: Page) -> None:
    go(page, place, "devices")
    lanes = page.get_by_role("region", name="Lanes of this server")
    expect(lanes).to_contain_text("up")
    expect(lanes).to_contain_text("paused")


def test_the_overview_says_what_is_wrong_the_worst_first(
    place: Place, ids: dict[str, str], page: Page
) -> None:
    go(page, place)
    # What else is found depends on how slow the machine is, and on how long ago all that was.
    lines = page.locator(".findings > li[data-code]:not(.gone)")
    codes = lines.evaluate_all("all => all.map(each => each.dataset.code)")
    assert [code for code in codes if code in ("paused", "dead")] == ["paused", "dead"]
    severities = lines.evaluate_all("all => all.map(each => each.classList[0])")
    assert severities == sorted(severities, key=["alarm", "warning", "note"].index)
    expect(page.locator(".findings > li[data-code=paused]")).to_contain_text("held 1 waiting")


def test_charts_are_read_by_keyboard_both_at_once_and_have_tables(
    place: Place, ids: dict[str, str], page: Page
) -> None:
    go(page, place)
    charts = page.locator("figure.chart")
    expect(charts).to_have_count(2)
    rates, waits = (charts.nth(at).locator(".canvas") for at in (0, 1))
    expect(rates).to_have_attribute("aria-valuetext", re.compile(r"^now: in [\d.]+, done [\d.]+"))
    expect(rates.locator("path.ln:not(.open, .mark)")).to_have_count(3)
    rates.focus()
    page.keyboard.press("Home")
    for each in (rates, waits):
        expect(each).to_have_attribute("aria-valuenow", "0")
        expect(each).to_have_attribute("aria-valuetext", re.compile(r"^\d\d:\d\d: "))
        expect(each.locator(".cross")).to_have_count(1)
    page.keyboard.press("ArrowRight")
    expect(waits).to_have_attribute("aria-valuenow", "1")
    page.keyboard.press("Escape")
    expect(waits.locator(".cross")).to_have_count(0)
    page.get_by_role("button", name="As a table: Jobs a second").click()
    expect(charts.first.locator("tbody tr")).to_have_count(60)
    page.get_by_role("button", name="7 d").click()
    expect(charts.first.locator("tbody tr")).to_have_count(168)


COURSE = """async ([source, openMs, marks]) => {
    const { Chart } = await import(source);
    const chart = new Chart({ title: "Jobs a second", figure: String,
        series: [{ word: "in", look: "in", of: point => point.n }] });
    document.querySelector("main").append(chart.place);
    const points = Array.from({ length: 60 }, (_, at) => ({ at: at * 60000, n: 5 }));
    chart.draw({ points, step_ms: 60000, open_ms: openMs, marks });
    return { open: chart.place.querySelectorAll(".ln.open").length,
        hatch: chart.place.querySelectorAll(".openb").length,
        marks: [...chart.place.querySelectorAll(".mark-text")].map(each => each.textContent),
        scale: [...chart.place.querySelectorAll(".y li")].map(each => each.textContent) };
}"""


def test_a_chart_hatches_what_is_not_over_and_joins_marks_that_lie_close(
    place: Place, page: Page
) -> None:
    go(page, place, "health")
    source = page.locator("script[src*=main]").evaluate("s => s.src.replace('main', 'chart')")
    minute = 60_000
    marks = [{"at": at * minute, "text": f"1.8.{at}"} for at in (10, 40, 41)]
    half = page.evaluate(COURSE, [source, 30_000, marks])
    scale = ["6", "4", "2", "0"]
    told = ["▾ 1.8.10", "▾ 2 marks"]
    assert half == {"open": 1, "hatch": 1, "marks": told, "scale": scale}
    # The rate of three seconds says nothing: the line ends before.
    assert page.evaluate(COURSE, [source, 3_000, []])["open"] == 0
