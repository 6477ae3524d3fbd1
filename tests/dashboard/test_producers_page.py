"""Producers on the page: their numbers as they grow, and who may delete one."""

from collections.abc import Iterator

import httpx
import pytest
from playwright.sync_api import Page, expect

from .conftest import NewPage
from .place import Place, key_file, serving
from .test_operating import confirm
from .test_pages import go
from .test_rights import sign_in

AT = "queues?tab=producers"


@pytest.fixture
def page(same_page: Page) -> Page:
    """One page for all of this file."""
    return same_page


def send(place: Place, name: str, first: int, count: int) -> int:
    """Store numbered jobs. Returns the status."""
    producer = {"name": name, "epoch": "7f3a", "seq": first}
    jobs = [{"queue": "q", "type": "t", "payload": 1}] * count
    body = {"producer": producer, "jobs": jobs}
    return httpx.post(f"{place.primary}/jobs/bulk", json=body, trust_env=False).status_code


def test_a_number_grows_on_the_page_while_somebody_looks(place: Place, page: Page) -> None:
    send(place, "device-1", 1, 2)
    go(page, place, AT)
    row = page.locator("main tr[data-key=device-1]")
    expect(row.locator("td")).to_have_count(4)
    expect(row.locator("td").nth(0)).to_have_text("7f3a")
    expect(row.locator("td").nth(1)).to_have_text("2")
    expect(row.locator("td time")).to_have_count(1)
    send(place, "device-1", 3, 1_998)
    expect(row.locator("td").nth(1)).to_have_text("2,000")


def test_a_producer_is_deleted_once_that_is_confirmed(place: Place, page: Page) -> None:
    # A name may have what a path has.
    name = "shop/eu@7"
    send(place, name, 1, 3)
    go(page, place, AT)
    row = page.locator(f"main tr[data-key='{name}']")
    row.hover()
    row.get_by_role("button", name=f"More for {name}").click()
    page.locator(".menu").get_by_role("button", name="Delete…").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("Its last number, 3, is forgotten")
    dialog.locator("summary").click()
    expect(dialog).to_contain_text(f"zq producers forget {name}")
    dialog.get_by_role("button", name="Keep the producer").click()
    assert send(place, name, 1, 3) == 200

    row.get_by_role("button", name=f"More for {name}").click()
    page.locator(".menu").get_by_role("button", name="Delete…").click()
    confirm(page, "Delete the producer", f"The producer {name} is deleted.")
    expect(row).to_have_count(0)
    assert send(place, name, 1, 3) == 201


def test_many_producers_come_page_by_page(place: Place, page: Page) -> None:
    for n in range(51):
        send(place, f"many-{n:02}", 1, 0)
    go(page, place, AT)
    expect(page.locator("main tbody tr")).to_have_count(50)
    page.get_by_role("button", name="Later ones").click()
    expect(page.locator("main tr[data-key=many-50]")).to_be_visible()
    expect(page.locator("main tr[data-key=many-00]")).to_have_count(0)
    page.get_by_role("button", name="First ones").click()
    expect(page.locator("main tr[data-key=many-00]")).to_be_visible()


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    root = tmp_path_factory.mktemp("guarded")
    with serving(root / "data", "--keys", str(key_file(root / "keys"))) as place:
        producer = {"name": "device-17", "epoch": "7f3a", "seq": 1}
        httpx.post(
            f"{place.primary}/jobs/bulk",
            json={"producer": producer, "jobs": []},
            headers={"Authorization": "Bearer allall"},
            trust_env=False,
        ).raise_for_status()
        yield place


@pytest.mark.parametrize(("key", "menus"), [("read", 0), ("all", 1)])
def test_who_may_not_manage_has_no_button(
    guarded: Place, new_page: NewPage, key: str, menus: int
) -> None:
    page = new_page()
    sign_in(page, guarded, key)
    expect(page.locator("#live")).to_have_text("live")
    go(page, guarded, AT)
    expect(page.locator("main tr[data-key=device-17]")).to_be_visible()
    expect(page.get_by_role("button", name="More for device-17")).to_have_count(menus)
