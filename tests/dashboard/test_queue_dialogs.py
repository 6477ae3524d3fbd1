"""The dialogs about a queue: its settings and its schema, and the commands that do the same."""

import json
import shlex

import httpx
from click.testing import CliRunner
from playwright.sync_api import Page, expect

from zq.cli import main

from .place import Place
from .test_acting import api
from .test_pages import go
from .test_sweep_dialogs import command, shown_to_work


def test_a_schema_is_given_to_a_queue_and_taken_away(place: Place, page: Page) -> None:
    job = {"queue": "orders", "type": "t", "payload": {"n": 1}}
    httpx.post(f"{place.primary}/jobs", json=job, trust_env=False)
    go(page, place, "queue?name=orders&tab=Schema")
    expect(page.locator("main")).to_contain_text("the queue has no schema")
    page.get_by_role("button", name="Change schema…").click()
    fields = '[{"name": "n", "type": "int"}]'
    page.locator("dialog textarea").fill(f'{{"type": "record", "name": "O", "fields": {fields}}}')
    page.get_by_role("button", name="Go on…").click()
    shown = page.get_by_role("dialog").locator("code").first.inner_text()
    printf, percent, sent, pipe, zq, *words = shlex.split(shown)
    assert (printf, percent, pipe, zq) == ("printf", "%s", "|", "zq")
    assert words[-2:] == ["--url", place.primary]
    done = CliRunner().invoke(main, words, input=sent)
    assert done.stdout == "new jobs of orders have to match version 1\n"
    page.get_by_role("dialog").get_by_role("button", name="Change").click()
    expect(page.get_by_role("dialog")).to_contain_text("have to match this schema")
    page.keyboard.press("Escape")
    expect(page.locator("main pre")).to_contain_text('"name": "n"')
    job = {"queue": "orders", "type": "t", "payload": {"n": "one"}}
    assert httpx.post(f"{place.primary}/jobs", json=job, trust_env=False).status_code == 422
    page.get_by_role("button", name="Remove schema…").click()
    assert command(page) == ["schema", "orders", "--remove"]
    shown_to_work(place, command(page))
    page.get_by_role("dialog").get_by_role("button", name="Remove").click()
    expect(page.locator("main")).to_contain_text("the queue has no schema")
    assert httpx.post(f"{place.primary}/jobs", json=job, trust_env=False).status_code == 201


def test_settings_are_changed_by_the_command_that_the_dialog_shows(
    place: Place, page: Page
) -> None:
    path = "/queues/tuned%20one/settings"
    old = {"rate": 2.5, "dead_letter": "lost", "retention": {"dead_ms": 1000}}
    httpx.patch(f"{place.primary}{path}", json=old, trust_env=False)
    go(page, place, "queue?name=tuned%20one&tab=Config")
    page.get_by_role("button", name="Change settings…").click()
    new = {"rate": None, "dead_letter": "it's lost", "retention": {"dead_ms": 2000}, "paused": True}
    page.locator("dialog textarea").fill(json.dumps(new | {"pause_reason": "42"}))
    page.get_by_role("button", name="Go on…").click()
    words = command(page)
    assert words[:3] == ["settings", "tuned one", "rate=null"]
    shown_to_work(place, words)
    by_command = api(place, path)
    expected = {"paused": True, "pause_reason": "42", "dead_letter": "it's lost"}
    assert by_command == expected | {"retention": {"dead_ms": 2000}}
    httpx.patch(f"{place.primary}{path}", json=old | {"paused": None}, trust_env=False)
    page.get_by_role("dialog").get_by_role("button", name="Change").click()
    expect(page.get_by_role("dialog")).to_contain_text("The settings are changed.")
    assert api(place, path) == by_command
