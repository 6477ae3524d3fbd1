"""What is typed into a field is read, or refused in words: nothing becomes "for ever"."""

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from .conftest import patient
from .place import Place

READ = """async ([source, reader, text]) => {
    const fields = await import(source);
    try { return fields[reader](text); } catch (error) { return error.message; }
}"""


@pytest.fixture(scope="module")
def page(browser: Browser, place: Place) -> Iterator[Page]:
    """A page on which nothing happens but that functions are called."""
    context = patient(browser.new_context())
    page = context.new_page()
    page.goto(place.ui)
    yield page
    context.close()


def read(page: Page, reader: str, text: Any) -> Any:
    source = page.locator("script[src*=main]").evaluate("s => s.src.replace('main', 'fields')")
    return page.evaluate(READ, [source, reader, text])


@pytest.mark.parametrize(
    ("reader", "text", "found"),
    [
        ("duration", "1h", 3_600_000),
        ("duration", "90 min", 5_400_000),
        ("duration", "5400 s", 5_400_000),
        ("duration", "1h 30m", 5_400_000),
        ("duration", "1 d, 2 Hours", 93_600_000),
        ("duration", "0.5s", 500),
        ("duration", "90", "Which unit? Write 90 s, 90 min or 90 h."),
        ("duration", "-5", "“-5” is no span of time: write it as 90 min, 1h 30m or 7 d."),
        ("duration", "-5 min", "“-5 min” is no span of time: write it as 90 min, 1h 30m or 7 d."),
        (
            "duration",
            "1 fortnight",
            "“1 fortnight” is no span of time: write it as 90 min, 1h 30m or 7 d.",
        ),
        ("duration", "1h x", "“1h x” is no span of time: write it as 90 min, 1h 30m or 7 d."),
        ("whole", "5", 5),
        ("whole", "1h", "A whole number, such as 5. “1h” is a time."),
        ("whole", "2.5", "A whole number, such as 5."),
        ("atLeastOne", "0", "At least 1. Leave it empty for no limit."),
        ("positive", "0.5", 0.5),
        ("positive", "-1", "A number above 0, such as 40 or 0.5."),
        ("positive", "0", "A number above 0, such as 40 or 0.5."),
        ("spanned", 5_400_000, "1 h 30 min"),
        ("spanned", 0, "0 s"),
    ],
    ids=str,
)
def test_a_field_reads_or_says_what_would_be_right(
    page: Page, reader: str, text: Any, found: Any
) -> None:
    assert read(page, reader, text) == found
