"""Buttons and server agree: what a key may not do, no page offers, and the server refuses."""

from collections.abc import Iterator
from typing import NamedTuple

import httpx
import pytest
from playwright.sync_api import Browser, Page, Request, expect

from zq.operators.page.http.session import CHANGING

from .conftest import patient
from .place import Place, key_file, seed, serving
from .test_pages import PAGES, go

SAFE = ("GET", "HEAD")
ACTED_ON = ("ready", "in_flight", "dead", "completed")
"""Statuses whose jobs have buttons of their own."""


TOUCH = """() => {
    document.querySelector("main tbody input[type=checkbox]")?.click();
    for (const field of document.querySelectorAll("[data-setting=rate] input:enabled")) {
        field.value = "1";
        field.dispatchEvent(new Event("input", { bubbles: true }));
    }
}"""
STOP = """() => {
    const send = window.fetch;
    window.sent = [];
    window.fetch = (path, options = {}) => {
        const { method = "GET", body = null } = options;
        if (["GET", "HEAD"].includes(method)) return send(path, options);
        sent.push([method, new URL(path, location.href).href, body]);
        return Promise.reject(new TypeError("it is stopped"));
    };
}"""
"""Let nothing that changes something leave the page, and keep it in `sent`."""
PRESS_OTHERS = """document.querySelectorAll("main button:not([data-scope])").forEach(
    each => each.closest("[popover]") || each.click())"""
PRESS = """async label => {
    const shown = each => !each.disabled && each.checkVisibility();
    const fill = (field, text) => {
        field.value = text;
        field.dispatchEvent(new Event("input", { bubbles: true }));
    };
    const until = find => new Promise(done => {
        const watch = new MutationObserver(() => look());
        const look = () => {
            const found = find();
            if (found) { watch.disconnect(); done(found); }
        };
        watch.observe(document, { subtree: true, childList: true, attributes: true });
        look();
    });
    const labels = [...document.querySelectorAll("main [data-scope]")];
    let button = labels.find(each => each.textContent === label && shown(each));
    button.form?.querySelectorAll("[required]").forEach(each => fill(each, "1"));
    button.click();
    let tools = null;
    while (label.endsWith("…")) {
        const dialog = await until(() => document.querySelector("dialog[open]:has(footer button)"));
        for (const field of dialog.querySelectorAll("#typed")) {
            fill(field, dialog.querySelector("label[for=typed] b").textContent);
        }
        dialog.querySelectorAll("input[name=queue], input[name=text]").forEach(
            each => fill(each, "mail"));
        const before = button;
        button = await until(() => [...document.querySelectorAll("dialog[open] footer button")]
            .slice(-1).find(each => each !== before && shown(each)));
        label = button.textContent;
        tools = [...document.querySelectorAll("dialog[open] .stands pre")].map(e => e.ariaLabel);
        button.click();
    }
    await until(() => sent.length);
    return [tools, sent.splice(0)];
}"""
"""Press the first button of a label, and return what it sends. One that ends in an ellipsis asks
first, in dialogs: what the last one says to stand for is returned besides. A hand is not needed
here, and its way to each button would take most of the time.
"""
CLOSE = 'document.querySelectorAll("dialog").forEach(each => each.close())'


class Change(NamedTuple):
    """A button that changes something, and the request behind it."""

    to: str
    label: str
    scope: str
    method: str
    url: str
    body: str | None

    def sent_by(self, key: str) -> int:
        """The status of the answer to the holder of this key."""
        headers = {"Authorization": f"Bearer {key * 2}", "Content-Type": "application/json"}
        with httpx.Client(trust_env=False) as http:
            return http.request(
                self.method, self.url, content=self.body, headers=headers
            ).status_code


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    root = tmp_path_factory.mktemp("rights")
    with serving(root / "data", "--keys", str(key_file(root / "keys"))) as place:
        yield place


@pytest.fixture(scope="module")
def places(place: Place) -> list[str]:
    """Every page, with a job in each status, and each filter that brings buttons of its own."""
    headers = {"Authorization": "Bearer allall"}
    ids = seed(place.primary, headers)
    with httpx.Client(base_url=place.primary, headers=headers, trust_env=False) as http:
        http.post("/jobs", json={"queue": "swept", "type": "t", "payload": 1})
        # The page Sweeps offers to undo that.
        http.post("/jobs/cancel", params={"queue": "swept"}, json={})
        groups = http.get("/failures").json()
    cause = f"failures?error={groups['causes'][0]['id']}"
    jobs = [f"job?id={ids[status]}" for status in ACTED_ON]
    return [*PAGES.values(), "jobs?f=status%3Aready", cause, *jobs]


def sign_in(page: Page, place: Place, name: str) -> None:
    page.goto(place.ui)
    page.get_by_label("Access key").fill(name * 2)
    page.get_by_role("button", name="Sign in").click()


def sign_in_and_look(page: Page, place: Place, name: str) -> None:
    """Sign in, and wait for the overview."""
    sign_in(page, place, name)
    # The form to sign in has a heading and a button too.
    expect(page.locator("#live")).to_have_text("live")


def visit(page: Page, place: Place, to: str) -> None:
    """Open a page anew. Its first row is ticked, and a setting changed: that brings buttons of
    their own.
    """
    if page.url.endswith(f"#/{to}"):
        go(page, place, "nowhere")
    go(page, place, to)
    if to == "overview":
        # Charts come after the first numbers, and have buttons of their own.
        expect(page.get_by_role("group", name="Range of the charts")).to_be_visible()
    page.evaluate(TOUCH)


def offered(page: Page) -> list[tuple[str, str]]:
    """Labels and scopes of the buttons that change something and can be pressed, each once."""
    found: list[list[str]] = page.evaluate(
        """[...document.querySelectorAll("main [data-scope]")]
        .filter(each => !each.disabled && each.checkVisibility())
        .map(each => [each.textContent, each.getAttribute("data-scope")])"""
    )
    return sorted({(label, scope) for label, scope in found})


@pytest.fixture(scope="module")
def changes(browser: Browser, place: Place, places: list[str]) -> list[Change]:
    """What all buttons of all pages ask of the server. No request of them gets there."""
    found: list[Change] = []
    passed: list[str] = []

    def heard(request: Request) -> None:
        if request.method not in SAFE:
            passed.append(request.url)

    context = patient(browser.new_context())
    page = context.new_page()
    sign_in_and_look(page, place, "all")
    page.on("request", heard)
    page.evaluate(STOP)
    for to in [*places, "nowhere"]:
        visit(page, place, to)
        assert not page.evaluate("sent"), (
            to,
            "a button without a scope has changed something before",
        )
        for label, scope in offered(page):
            tools, sent = page.evaluate(PRESS, label)
            assert tools in (None, ["curl"], ["zq", "curl"]), "a dialog lacks what it stands for"
            found += [Change(to, label, scope, *each) for each in sent]
            page.evaluate(CLOSE)
            if not label.endswith("…"):
                # What asks first leaves the page as it was. What acts at once may not.
                visit(page, place, to)
        page.evaluate(PRESS_OTHERS)
        page.evaluate(CLOSE)
    assert not passed
    context.close()
    return found


# `reader-rest` may do all that `read` may.
@pytest.mark.parametrize("name", ["reader-changer", "reader-sender", "reader-rest"])
def test_the_page_offers_what_the_server_allows(
    changes: list[Change], place: Place, page: Page, name: str
) -> None:
    scopes = {"reader-changer": {"manage"}, "reader-sender": {"enqueue"}}.get(name, set())
    sign_in_and_look(page, place, name)
    for to in dict.fromkeys(change.to for change in changes):
        visit(page, place, to)
        expected = [(c.label, c.scope) for c in changes if c.to == to and c.scope in scopes]
        assert offered(page) == expected, to
    for change in changes:
        if change.scope not in scopes:
            assert change.sent_by(name) == 403, change


def test_every_button_of_a_page_has_one_of_the_scopes_that_change_something(
    changes: list[Change],
) -> None:
    assert {change.scope for change in changes} == CHANGING
    assert "Undo…" in {change.label for change in changes}


def test_the_menu_of_a_cause_has_what_the_key_may_do(
    place: Place, places: list[str], page: Page
) -> None:
    looks = ["Its jobs", "A sample"]
    changes = ["Requeue the dead ones…", "Cancel those that wait…", "Delete the dead ones…"]
    for name, items in (("read", looks), ("reader-changer", looks + changes)):
        sign_in_and_look(page, place, name)
        go(page, place, "failures")
        page.get_by_role("button", name="More for").first.click()
        expect(page.locator(".menu li")).to_have_text(items)
        page.keyboard.press("Escape")
        page.context.clear_cookies()


def test_a_key_that_may_not_read_is_told_so(place: Place, page: Page) -> None:
    sign_in(page, place, "enqueue")
    expect(page.get_by_role("alert")).to_contain_text("does not have the scope read")


def test_signing_out_ends_the_session(place: Place, page: Page) -> None:
    sign_in_and_look(page, place, "read")
    page.get_by_role("button", name="Settings: zone").click()
    page.get_by_role("dialog").get_by_role("button", name="Sign out").click()
    expect(page.get_by_label("Access key")).to_be_visible()
    assert page.request.get(f"{place.ui}api/jobs").status == 401


@pytest.mark.parametrize(
    ("to", "told"), [("jobs?f=100%", "Jobs, 100%."), ("jobs?f=a%26b", "Jobs, a&b.")]
)
def test_the_form_to_sign_in_names_the_page_whatever_was_typed(
    place: Place, page: Page, to: str, told: str
) -> None:
    sign_in_and_look(page, place, "read")
    page.evaluate(f"location.hash = '#/{to}'")
    again = page.get_by_role("button", name="Count again")
    expect(again).to_be_visible()
    page.context.clear_cookies()
    again.click()
    expect(page.locator("main .banner")).to_contain_text(f"you are back at {told}")
    expect(page.locator(".toast")).to_have_count(0)


def test_the_server_allows_what_a_page_offers(changes: list[Change]) -> None:
    # The last one of this file: these requests do what they say.
    for change in changes:
        name = {"manage": "reader-changer", "enqueue": "reader-sender"}[change.scope]
        assert change.sent_by(name) != 403, change
