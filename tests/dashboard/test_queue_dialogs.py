"""The page of a queue: its settings and its schema are changed there, and its pause."""

import json
import re
import shlex
import signal
import time
from pathlib import Path
from typing import Any

import httpx
import pytest
from click.testing import CliRunner
from playwright.sync_api import Locator, Page, expect

from zq.cli.group import main
from zq.model.settings import QueueSettings

from .place import Place, serving, until
from .test_acting import api
from .test_lists import push
from .test_pages import go
from .test_stale import wait_for
from .test_sweep_dialogs import command, shown_to_work

PAUSE = ("paused", "pause_reason", "paused_by", "paused_until")
"""Settings that the pause of a queue is made of."""


@pytest.fixture
def page(same_page: Page) -> Page:
    """One page for all of this file."""
    return same_page


def settings(place: Place, queue: str, **new: Any) -> None:
    """Set what is given, before a page is opened."""
    url = f"{place.primary}/queues/{queue}/settings"
    assert httpx.patch(url, json=new, trust_env=False).is_success


def field(page: Page, name: str) -> Locator:
    """The box of a setting."""
    return page.locator(f"[data-setting='{name}']").locator("input, select")


def does(page: Page, button: str) -> None:
    """Press a button of the dialog, which closes."""
    page.get_by_role("dialog").get_by_role("button", name=button, exact=True).click()
    expect(page.get_by_role("dialog")).to_have_count(0)


def test_a_schema_is_given_to_a_queue_and_taken_away(place: Place, page: Page) -> None:
    job = {"queue": "orders", "type": "t", "payload": {"n": 1}}
    httpx.post(f"{place.primary}/jobs", json=job, trust_env=False)
    go(page, place, "queue?name=orders&tab=schema")
    expect(page.locator("main")).to_contain_text("the queue has no schema")
    page.get_by_role("button", name="Set a schema…").click()
    page.locator("dialog textarea").fill("{")
    page.get_by_role("button", name="Go on…").click()
    expect(page.get_by_role("dialog").get_by_role("alert")).to_contain_text("This is no JSON")
    fields = '[{"name": "n", "type": "int"}]'
    page.locator("dialog textarea").fill(f'{{"type": "record", "name": "O", "fields": {fields}}}')
    page.get_by_role("button", name="Go on…").click()
    does(page, "Change")
    expect(page.locator("main pre")).to_contain_text('"name": "n"')
    job = {"queue": "orders", "type": "t", "payload": {"n": "one"}}
    assert httpx.post(f"{place.primary}/jobs", json=job, trust_env=False).status_code == 422
    page.get_by_role("button", name="Remove schema…").click()
    assert command(page) == ["schema", "orders", "--remove"]
    shown_to_work(place, command(page))
    does(page, "Remove")
    expect(page.locator("main")).to_contain_text("the queue has no schema")
    assert httpx.post(f"{place.primary}/jobs", json=job, trust_env=False).status_code == 201


def test_large_numbers_of_a_schema_stay_as_they_are(place: Place, page: Page) -> None:
    url = f"{place.primary}/queues/exact/schema"
    long = {"name": "n", "type": "long", "default": 2**63 - 1, "doc": "it's [ 1, 2 ]"}
    schema = {"type": "record", "name": "O", "fields": [long]}
    assert httpx.put(url, json={"schema": schema}, trust_env=False).is_success
    go(page, place, "queue?name=exact&tab=schema")
    expect(page.locator("main pre")).to_contain_text(f'"default": {2**63 - 1}')
    page.get_by_role("button", name="Change schema…").click()
    box = page.locator("dialog textarea")
    box.fill(box.input_value().replace('"O"', '"P"'))
    page.get_by_role("button", name="Go on…").click()
    changed = schema | {"name": "P"}
    dialog = page.get_by_role("dialog")
    zq = dialog.get_by_label("zq", exact=True).text_content() or ""
    assert json.loads(shlex.split(zq)[2]) == changed
    curl = shlex.split(dialog.get_by_label("curl", exact=True).text_content() or "")
    assert json.loads(curl[curl.index("-d") + 1]) == {"schema": changed}
    does(page, "Change")
    expect(page.locator("main pre")).to_contain_text('"name": "P"')
    assert httpx.get(url, trust_env=False).json()["schema"] == changed


def test_settings_are_changed_on_the_page_and_taken_back(place: Place, page: Page) -> None:
    old = {"rate": 2.5, "dead_letter": "lost", "retention": {"dead_ms": 1000}}
    settings(place, "tuned%20one", **old)
    go(page, place, "queue?name=tuned%20one&tab=settings")
    expect(field(page, "rate")).to_have_value("2.5")
    expect(field(page, "retention.dead_ms")).to_have_value("1 s")
    field(page, "rate").fill("40")
    expect(page.locator("[data-setting=rate] .help")).to_contain_text("was 2.5")
    field(page, "dead_letter").fill("it's lost")
    field(page, "retention.dead_ms").fill("1h 30m")
    field(page, "max_depth").fill("500")
    expect(page.locator("form .foot")).to_contain_text(
        "4 changes: rate 2.5 → 40 jobs a second, depth not set → 500 unfinished,"
        " dead letters lost → it's lost, dead kept 1 s → 1 h 30 min."
    )
    page.get_by_role("button", name="Save 4 changes…").click()
    words = command(page)
    assert words[:2] == ["settings", "tuned one"]
    new = {"rate": 40, "dead_letter": "it's lost", "max_depth": 500}
    expected = new | {"retention": {"dead_ms": 5_400_000}}
    shown_to_work(place, words)
    assert api(place, "/queues/tuned%20one/settings") == expected
    settings(place, "tuned%20one", **old, max_depth=None)
    does(page, "Save 4 changes")
    assert api(place, "/queues/tuned%20one/settings") == expected
    expect(page.locator("form .foot")).to_contain_text("Settings work at once")
    page.locator(".toast").get_by_role("button", name="Undo").click()
    until(lambda: api(place, "/queues/tuned%20one/settings") == old)
    expect(field(page, "rate")).to_have_value("2.5")


def test_what_is_typed_stays_while_somebody_else_changes_a_setting(
    place: Place, page: Page
) -> None:
    settings(place, "shared", rate=8)
    go(page, place, "queue?name=shared&tab=settings")
    field(page, "concurrency").fill("3")
    settings(place, "shared", rate=9, concurrency=5)
    expect(field(page, "rate")).to_have_value("9")
    expect(page.locator("[data-setting=concurrency] .help")).to_contain_text("was 5")
    expect(field(page, "concurrency")).to_have_value("3")
    page.get_by_role("button", name="Discard").click()
    expect(field(page, "concurrency")).to_have_value("5")


WRONG = [
    ("dead_letter_after", "1h", "A whole number, such as 5. “1h” is a time."),
    ("rate", "-5", "A number above 0, such as 40 or 0.5."),
    ("lease_ms", "90", "Which unit? Write 90 s, 90 min or 90 h."),
    ("retention.completed_ms", "a while", "“a while” is no span of time"),
    ("concurrency", "0", "At least 1. Leave it empty for no limit."),
]


def test_a_field_says_what_would_be_right_and_nothing_is_saved(place: Place, page: Page) -> None:
    go(page, place, "queue?name=checked&tab=settings")
    for name, text, said in WRONG:
        field(page, name).fill(text)
        field(page, name).press("Tab")
        expect(page.locator(f"[data-setting='{name}'] .error")).to_contain_text(said)
        expect(page.locator("form .foot")).to_contain_text("1 field is not right.")
        expect(page.locator("form button[type=submit]")).to_be_disabled()
        field(page, name).press("Enter")
        expect(page.get_by_role("dialog")).to_have_count(0)
        field(page, name).fill("")
        field(page, name).press("Tab")
        expect(page.locator("form .foot")).not_to_contain_text("not right")
    assert api(place, "/queues/checked/settings") == {}


def test_a_rate_says_when_the_queue_is_drained(place: Place, page: Page) -> None:
    push(place, 120, "backlog")
    # What is said beside a field is of the numbers at which it was typed.
    wait_for(place, "backlog", 120)
    go(page, place, "queue?name=backlog&tab=settings")
    field(page, "rate").fill("1000")
    expect(page.locator("[data-setting=rate] .help")).to_contain_text(
        re.compile("the queue is drained in about|a second come: at 1,000 the queue grows")
    )
    field(page, "max_depth").fill("100")
    expect(page.locator("[data-setting=max_depth] .help")).to_contain_text(
        "120 are unfinished: from now on every new job is refused with 429"
    )


def test_the_form_has_every_setting_of_a_queue(
    place: Place, ids: dict[str, str], page: Page
) -> None:
    go(page, place, "queue?name=mail&tab=settings")
    expect(page.locator("[data-setting]").first).to_be_visible()
    shown = {
        str(each.get_attribute("data-setting")).split(".")[0]
        for each in page.locator("[data-setting]").all()
    }
    assert shown == set(QueueSettings.__struct_fields__) - set(PAUSE)
    expect(field(page, "max_depth")).to_have_value("500")
    expect(field(page, "dead_letter")).to_have_value("mail-dead")
    expect(field(page, "rate")).to_have_value("")


def test_a_queue_is_paused_for_as_long_as_it_was_typed(place: Place, page: Page) -> None:
    push(place, 1, "resting")
    go(page, place, "queue?name=resting")
    page.get_by_role("button", name="Pause…").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Reason").fill("it's late")
    for text in ("90 min", "1h 30m", "5400 s"):
        dialog.get_by_label("Pause for").fill("1 h")
        expect(dialog).to_contain_text("1 h, until")
        dialog.get_by_label("Pause for").fill(text)
        expect(dialog).to_contain_text("1 h 30 min, until")
        words = command(page)
        assert words == ["pause", "resting", "--for", "90m", "--reason", "it's late"]
    before = time.time() * 1000
    does(page, "Pause")
    paused: Any = api(place, "/queues/resting/settings")
    assert (paused["paused"], paused["pause_reason"]) == (True, "it's late")
    assert abs(paused["paused_until"] - before - 5_400_000) < 5 * 60_000
    expect(page.locator(".toast")).to_contain_text("resting is paused.")
    page.locator(".toast").get_by_role("button", name="Undo").click()
    until(lambda: api(place, "/queues/resting/settings") == {})
    expect(page.get_by_role("button", name="Pause…")).to_be_visible()


def test_a_time_that_cannot_be_read_pauses_nothing(place: Place, page: Page) -> None:
    push(place, 1, "running-on")
    go(page, place, "queue?name=running-on")
    page.get_by_role("button", name="Pause…").click()
    dialog = page.get_by_role("dialog")
    for text in ("-5", "90", "for ever", "1 fortnight"):
        dialog.get_by_label("Pause for").fill("1 h")
        dialog.get_by_label("Pause for").press("Tab")
        expect(dialog.get_by_role("button", name="Pause")).to_be_enabled()
        dialog.get_by_label("Pause for").fill(text)
        dialog.get_by_label("Pause for").press("Tab")
        expect(dialog.locator(".error")).to_be_visible()
        expect(dialog.get_by_role("button", name="Pause")).to_be_disabled()
        dialog.get_by_label("Pause for").press("Enter")
        expect(dialog).to_have_count(1)
    assert api(place, "/queues/running-on/settings") == {}


def test_a_command_of_a_pause_is_read_as_the_page_reads_it(place: Place) -> None:
    for ms, text in ((5_400_000, "90m"), (3_600_000, "1h"), (1_500, "1500ms")):
        words = ["pause", "spans", "--create", "--for", text, "--url", place.primary]
        before = time.time() * 1000
        assert CliRunner().invoke(main, words).exit_code == 0
        ends: Any = api(place, "/queues/spans/settings")["paused_until"]
        assert abs(ends - before - ms) < 5 * 60_000
    settings(place, "spans", paused=None)


def test_a_queue_that_does_not_exist_is_asked_about_with_near_names(
    place: Place, ids: dict[str, str], page: Page
) -> None:
    go(page, place, "queue?name=mial")
    banner = page.locator("main .banner")
    expect(banner).to_contain_text("There is no queue “mial” yet.")
    page.get_by_role("button", name="Pause…").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("There is no queue “mial” yet. Did you mean mail")
    assert "--create" in command(page)
    page.keyboard.press("Escape")
    banner.get_by_role("link", name="mail", exact=True).click()
    expect(page.locator("main h1")).to_have_text("mail")
    assert api(place, "/queues/mial/settings") == {}


def test_settings_can_be_typed_when_the_server_has_said_what_holds_and_not_before(
    tmp_path: Path, page: Page
) -> None:
    with serving(tmp_path / "data") as own:
        push(own, 1, "mail")
        settings(own, "mail", rate=5)
        go(page, own, "queue?name=other&tab=settings")
        expect(field(page, "rate")).to_be_enabled()
        own.process.send_signal(signal.SIGSTOP)
        page.evaluate("location.hash = '#/queue?name=mail&tab=settings'")
        expect(field(page, "rate")).to_be_disabled()
        expect(field(page, "rate")).to_have_value("")
        own.process.send_signal(signal.SIGCONT)
        expect(field(page, "rate")).to_have_value("5")
        field(page, "rate").fill("40")
        expect(page.get_by_role("button", name="Save 1 change…")).to_be_enabled()
