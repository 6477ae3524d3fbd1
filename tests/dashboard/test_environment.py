"""The head of the page says which of several servers this is."""

from pathlib import Path

import pytest
from axe_playwright_python.base import AXE_SCRIPT
from playwright.sync_api import Page, expect

from .conftest import NewPage
from .place import Place, key_file, serving
from .test_pages import faults, go
from .test_rights import sign_in


def test_the_head_and_the_tab_name_the_server_and_what_it_is_for(place: Place, page: Page) -> None:
    go(page, place, "queues")
    expect(page.locator("#server")).to_have_text("edge-07")
    badge = page.locator("#environment")
    expect(badge).to_have_text("production")
    expect(page.locator("body")).to_have_attribute("data-env", "production")
    expect(page).to_have_title("Queues · production · edge-07 · zq")


@pytest.mark.parametrize("word", ["Staging", "eu-2"])
def test_who_is_not_signed_in_sees_what_the_server_is_for_and_not_its_name(
    tmp_path: Path, new_page: NewPage, word: str
) -> None:
    keys = ("--keys", str(key_file(tmp_path / "keys")))
    flags = ("--ui-environment", word, "--device", "edge-07", *keys)
    with serving(tmp_path / "data", *flags) as place:
        page = new_page(reduced_motion="reduce")
        page.goto(place.ui)
        page.evaluate(AXE_SCRIPT)
        expect(page).to_have_title(f"Sign in · {word} · zq")
        expect(page.locator("#server")).to_be_empty()
        expect(page.locator("#environment")).to_have_text(word)
        expect(page.locator("body")).to_have_attribute("data-env", word.lower())
        assert faults(page, (1440, 768, 320)) == []
        sign_in(page, place, "read")
        expect(page.locator("#server")).to_have_text("edge-07")
        expect(page).to_have_title(f"Overview · {word} · edge-07 · zq")
        page.close()


def test_without_a_word_there_is_no_badge(tmp_path: Path, new_page: NewPage) -> None:
    with serving(tmp_path / "data") as place:
        page = new_page()
        go(page, place)
        expect(page.locator("#server")).not_to_be_empty()
        expect(page.locator("#environment")).to_be_hidden()
        page.close()
