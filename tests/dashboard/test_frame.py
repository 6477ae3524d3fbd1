"""The frame around each page: the head, what it finds, its keys, and rows that stand still."""

import re
from urllib.parse import quote

import httpx
import pytest
from playwright.sync_api import Page, expect

from .place import Place
from .test_lists import push
from .test_pages import complete, go


@pytest.fixture
def page(same_page: Page) -> Page:
    """One page for all of this file, but for the one whose clock is moved."""
    return same_page


def test_the_head_counts_and_says_how_old_the_drawn_numbers_are(
    place: Place, ids: dict[str, str], fresh_page: Page
) -> None:
    page = fresh_page
    page.clock.install()
    go(page, place)
    queues = page.get_by_role("navigation", name="Pages").get_by_role("link", name="Queues")
    expect(queues).to_have_text(re.compile(r"Queues \d+ queues"))
    expect(queues).not_to_have_attribute("aria-current", "page")
    expect(page.locator("#age")).to_have_text(re.compile("old$"))
    page.keyboard.press("p")
    expect(page.locator("#live")).to_have_text("updates are paused")
    page.clock.fast_forward(42_000)
    # Nothing is drawn, so what is shown grows old.
    old = re.compile(r"^paused, ([4-9]\d s|\d+ min \d+ s) old$")
    expect(page.locator("#age")).to_have_text(old)
    page.keyboard.press("p")
    expect(page.locator("#live")).to_have_text("live")
    expect(page.locator("#age")).not_to_contain_text("paused")


FOUND = {
    "{dead}": "job?id={dead}",
    "died": "queue?name=died",
    "SMTP 421": "jobs?f=SMTP%20421",
    "type:send": "jobs?f=type%3Asend",
}


def test_what_is_typed_into_the_head_is_found(
    place: Place, ids: dict[str, str], page: Page
) -> None:
    for text, address in FOUND.items():
        go(page, place)
        page.keyboard.press("/")
        page.keyboard.type(text.format(**ids))
        page.keyboard.press("Enter")
        page.wait_for_url(re.compile(re.escape("#/" + address.format(**ids)) + "$"))


@pytest.mark.parametrize("queue", ["abcdefghijklmnopqrstuvwxyz", "x:y"])
def test_a_queue_is_found_whatever_its_name_looks_like(
    place: Place, page: Page, queue: str
) -> None:
    job = {"queue": queue, "type": "t", "payload": 1}
    assert httpx.post(f"{place.primary}/jobs", json=job, trust_env=False).status_code == 201
    go(page, place)
    page.keyboard.press("/")
    page.keyboard.type(queue)
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(re.escape(f"#/queue?name={quote(queue, safe='')}") + "$"))


def test_keys_walk_the_pages_and_the_rows(place: Place, ids: dict[str, str], page: Page) -> None:
    go(page, place)
    page.keyboard.press("g")
    page.keyboard.press("w")
    page.wait_for_url(re.compile("#/workers$"))
    page.keyboard.press("g")
    page.keyboard.press("o")
    complete(page, "/overview")
    rows = page.locator("main .findings li")
    expect(rows.first).to_be_visible()
    page.keyboard.press("j")
    expect(rows.first.locator("a").first).to_be_focused()
    # They act on the table that was used last.
    last = page.locator("main tbody tr").last.locator("a").first
    last.focus()
    page.keyboard.press("k")
    above = page.locator("main tbody tr").nth(-2).locator("a").first
    expect(above).to_be_focused()
    name = above.text_content()
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(f"#/queue[?]name={name}$"))


def test_no_row_moves_while_one_has_focus_and_those_that_come_are_counted(
    place: Place, page: Page
) -> None:
    push(place, 3, "calm")
    go(page, place)
    row = page.locator("tr[data-key=calm]")
    expect(row.locator("td.num").first).to_have_text("3")
    row.get_by_role("link").first.focus()
    order = page.locator("main tbody tr").evaluate_all("rows => rows.map(row => row.dataset.key)")
    for queue in ("new-a", "new-b"):
        push(place, 9, queue)
    push(place, 2, "calm")
    news = page.locator(".wide:has(tr[data-key=calm]) .news")
    expect(news).to_have_text("+2 new")
    expect(row.locator("td.num").first).to_have_text("5")
    rows = page.locator("main tbody tr")
    assert rows.evaluate_all("rows => rows.map(row => row.dataset.key)") == order
    news.click()
    expect(page.locator("tr[data-key=new-a]")).to_be_visible()
    expect(news).to_be_hidden()


def test_a_selected_text_stays_while_the_numbers_beside_it_go_on(place: Place, page: Page) -> None:
    push(place, 1, "before")  # with its second job, the other one would come first
    push(place, 1, "read")
    go(page, place)
    row = page.locator("tr[data-key=read]")
    expect(row.locator("td.num").first).to_have_text("1")
    row.locator("th").select_text()
    push(place, 1, "read")
    expect(row.locator("td.num").first).to_have_text("2")
    assert page.evaluate("document.getSelection().toString()").strip() == "read"


LINE = """async source => {
    const { overview } = await import(source);
    const main = document.querySelector("main");
    main.replaceChildren();
    const queues = [{ queue: "name", text: "4 dead" }];
    overview(main, new URLSearchParams(), () => {}).draw({ known_queues: 3, queues: {}, order: [],
        findings: [{ code: "dead", severity: 1, queues, more: 2 }],
        pulse: { totals: { dead: 4 }, findings: 1 } }, Date.now());
    const places = {};
    const texts = document.createTreeWalker(main.querySelector(".findings .cut"), 4);
    while (texts.nextNode()) {
        const range = document.createRange();
        range.selectNode(texts.currentNode);
        places[texts.currentNode.data] = range.getBoundingClientRect().top;
    }
    return places;
}"""


def test_a_name_in_a_finding_stands_on_the_line_of_its_text(place: Place, page: Page) -> None:
    go(page, place, "health")
    page.keyboard.press("p")
    source = page.locator("script[src*=main]").evaluate("s => s.src.replace('main', 'overview')")
    tops = page.evaluate(LINE, source)
    assert tops["name"] == tops["4 dead"]
    assert "2 more" in tops
    page.keyboard.press("p")


def test_the_whole_row_is_a_target(place: Place, page: Page) -> None:
    push(place, 1, "target")
    go(page, place)
    page.locator("tr[data-key=target] td.num").first.click()
    page.wait_for_url(re.compile("#/queue[?]name=target$"))


def test_no_two_buttons_of_the_overview_have_one_name(
    place: Place, ids: dict[str, str], page: Page
) -> None:
    httpx.post(
        f"{place.primary}/jobs",
        json={"queue": "other", "type": "t", "payload": 1},
        trust_env=False,
    )
    go(page, place)
    names = page.locator("main button:visible").evaluate_all(
        "all => all.map(each => each.getAttribute('aria-label') ?? each.textContent)"
    )
    assert len(names) > 10
    assert len(set(names)) == len(names), sorted(names)


def test_ages_go_on_while_the_server_says_that_nothing_has_changed(
    place: Place, page: Page
) -> None:
    push(place, 1, "ageing")
    go(page, place)
    age = page.locator("tr[data-key=ageing] time")
    before = age.text_content()
    # No frame comes: the next word of the server is that it is still here.
    expect(age).not_to_have_text(before or "")


def test_a_dialog_and_a_menu_go_with_the_page_for_which_they_were_opened(
    place: Place, page: Page
) -> None:
    push(place, 1, "left")
    push(place, 1, "left-for")
    go(page, place, "jobs?f=queue%3Aleft-for")
    go(page, place, "jobs?f=queue%3Aleft")
    page.get_by_role("button", name="Cancel all 1…").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("Cancel 1 job of left?")
    page.go_back()
    complete(page, "/jobs?f=queue%3Aleft-for")
    expect(dialog).to_have_count(0)
    page.get_by_role("button", name="More for").click()
    expect(page.locator(".menu")).to_be_visible()
    page.go_forward()
    complete(page, "/jobs?f=queue%3Aleft")
    expect(page.locator(".menu")).to_have_count(0)
