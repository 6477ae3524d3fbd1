"""What is hidden on the page, and shown to those who ask for it and may."""

from collections.abc import Iterator

import httpx
import pytest
from playwright.sync_api import Page, expect

from .place import Place, key_file, serving
from .test_rights import sign_in

SECRET = "hunter2"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    root = tmp_path_factory.mktemp("masked")
    flags = ("--keys", str(key_file(root / "keys")), "--ui-mask", "password|token")
    with serving(root / "data", *flags) as place:
        yield place


@pytest.mark.parametrize(("name", "may"), [("all", True), ("reader-changer", False)])
def test_a_hidden_field_is_revealed_by_a_button_to_those_who_may(
    place: Place, page: Page, name: str, may: bool
) -> None:
    job = {"queue": "mail", "type": "t", "payload": {"password": SECRET, "to": "ann"}}
    headers = {"Authorization": "Bearer allall"}
    reply = httpx.post(f"{place.primary}/jobs", json=job, headers=headers, trust_env=False)
    sign_in(page, place, name)
    expect(page.locator("#live")).to_have_text("live")
    page.evaluate("id => { location.hash = `#/job?id=${id}`; }", reply.json()["id"])
    payload = page.get_by_role("group", name="Payload")
    expect(payload).to_have_text('{ "password": hidden, "to": "ann" }')
    button = page.get_by_role("button", name="Reveal 1 hidden field")
    expect(button).to_have_count(int(may))
    if may:
        button.click()
        expect(payload).to_have_text(f'{{ "password": "{SECRET}", "to": "ann" }}')
        expect(button).to_have_count(0)
    else:
        assert SECRET not in page.content()
    page.evaluate("location.hash = '#/health'")
    expect(page.locator("main")).to_contain_text("flush p99")
    expect(page.get_by_role("button", name="Backup now…")).to_have_count(int(may))
