"""Buttons and server agree: what a key may not do, the page does not offer."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from .place import Place, key_file, seed, serving


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    root = tmp_path_factory.mktemp("rights")
    with serving(root / "data", "--keys", str(key_file(root / "keys"))) as place:
        seed(place.primary, {"Authorization": "Bearer allall"})
        yield place


POST = """async ([path, body]) => (await fetch(path, {
    method: "POST", body, headers: {"Content-Type": "application/json"},
})).status"""


def sign_in(page: Page, place: Place, name: str) -> None:
    page.goto(place.ui)
    page.get_by_label("Access key").fill(name * 2)
    page.get_by_role("button", name="Sign in").click()


@pytest.mark.parametrize(
    ("name", "scopes"),
    [
        ("read", set()),
        ("reader-changer", {"manage"}),
        ("reader-sender", {"enqueue"}),
        ("all", {"manage", "enqueue"}),
    ],
    ids=["read", "reader-changer", "reader-sender", "all"],
)
def test_the_page_offers_what_the_server_allows(
    place: Place, page: Page, name: str, scopes: set[str]
) -> None:
    sign_in(page, place, name)
    expect(page.locator("#live")).to_have_text("live")
    shown: set[str] = set()
    for to in ("queue?name=mail", "queue?name=mail&tab=Enqueue"):
        page.evaluate("to => { location.hash = `#/${to}`; }", to)
        expect(page.get_by_role("heading", level=1)).to_have_text("Queue mail")
        expect(page.locator("[aria-busy]")).to_have_count(0)
        shown |= {
            str(each.get_attribute("data-scope")) for each in page.locator("[data-scope]").all()
        }
    assert shown == scopes
    asks = {
        "manage": ["api/jobs/cancel?queue=none", "{}"],
        "enqueue": ["api/jobs", '{"queue": "x"}'],
    }
    answers = {scope: page.evaluate(POST, ask) for scope, ask in asks.items()}
    assert {scope for scope, status in answers.items() if status != 403} == scopes


def test_a_key_that_may_not_read_is_told_so(place: Place, page: Page) -> None:
    sign_in(page, place, "enqueue")
    expect(page.get_by_role("alert")).to_contain_text("does not have the scope read")


def test_signing_out_ends_the_session(place: Place, page: Page) -> None:
    sign_in(page, place, "read")
    expect(page.locator("#live")).to_have_text("live")
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_label("Access key")).to_be_visible()
    assert page.request.get(f"{place.ui}api/jobs").status == 401
