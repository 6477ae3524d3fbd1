"""A page that hears nothing: it says so, asks by itself, and finds back to its events."""

import contextlib
import re
import signal
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest
from playwright.sync_api import Page, Route, expect

from .conftest import NewPage
from .place import Place, key_file, serving, until
from .test_lists import push
from .test_pages import go


class Withholding:
    """A proxy that passes everything on. While it is `closed`, it keeps events to itself."""

    def __init__(self, target: str) -> None:
        self._target = ("127.0.0.1", urlsplit(target).port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self.closed = False
        self.streams = 0
        """How often events were asked for."""
        threading.Thread(target=self._accept, daemon=True).start()

    def stop(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        asked: list[bytes] = []
        # Either side may be gone at any time: then the other one is let go.
        with client, contextlib.suppress(OSError), socket.create_connection(self._target) as server:
            back = threading.Thread(target=self._answer, args=(server, client, asked), daemon=True)
            back.start()
            while request := _read(client):
                asked.append(request)
                self.streams += request.startswith(b"GET /ui/live")
                server.sendall(request)
            server.shutdown(socket.SHUT_WR)
            back.join()

    def _answer(self, server: socket.socket, client: socket.socket, asked: list[bytes]) -> None:
        while answer := _read(server):
            if self.closed and asked[-1].startswith(b"GET /ui/live"):
                continue
            try:
                client.sendall(answer)
            except OSError:
                return


def _read(peer: socket.socket) -> bytes:
    try:
        return peer.recv(1 << 20)
    except OSError:
        return b""


@pytest.fixture
def proxy(place: Place) -> Iterator[Withholding]:
    proxy = Withholding(place.admin)
    yield proxy
    proxy.stop()


def wait_for(place: Place, queue: str, waiting: int) -> None:
    """Wait until the server has seen so many waiting jobs."""

    def seen() -> bool:
        found = httpx.get(f"{place.ui}look?topic=queues&q={queue}", trust_env=False).json()
        is_seen: bool = found["full"]["queues"].get(queue, {}).get("counts") == {"ready": waiting}
        return is_seen

    until(seen)


def test_a_page_without_events_says_so_asks_every_five_seconds_and_tries_another_stream(
    place: Place, proxy: Withholding, page: Page
) -> None:
    push(place, 1, "silent")
    page.clock.install()
    go(page, place._replace(admin=proxy.url), "queues?q=silent")
    waiting = page.locator("tr[data-key=silent] td.num").first
    expect(waiting).to_have_text("1")
    proxy.closed = True
    for count in (2, 3):
        push(place, 1, "silent")
        wait_for(place, "silent", count)
        page.clock.fast_forward(5_500)
        expect(page.locator("#live")).to_have_text(re.compile("^no events come"))
        expect(waiting).to_have_text(str(count))
    until(lambda: proxy.streams >= 3)
    proxy.closed = False
    page.clock.fast_forward(5_500)
    expect(page.locator("#live")).to_have_text("live")
    push(place, 1, "silent")
    expect(waiting).to_have_text("4")


def test_a_server_that_stops_answering_leaves_its_numbers_without_colour_and_with_their_time(
    tmp_path: Path, new_page: NewPage
) -> None:
    with serving(tmp_path / "data") as place:
        push(place, 3, "mail")
        page = new_page()
        page.clock.install()
        go(page, place)
        row = page.locator("tr[data-key=mail]")
        expect(row.locator("td.num").first).to_have_text("3")
        place.process.send_signal(signal.SIGSTOP)
        page.clock.fast_forward(6_000)
        banner = page.locator("#banners .banner.failed")
        expect(banner).to_contain_text(
            re.compile(r"^No answer for [\d mins]+\. These are the numbers")
        )
        expect(page.locator("body")).to_have_class(re.compile("stale"))
        expect(page.locator("#dot")).to_have_class("dot off")
        expect(row.locator("td.num").first).to_have_text("3")
        # Its title counts the seconds, and its button stays for whoever presses it.
        banner.get_by_role("button", name="Ask now").focus()
        before = banner.locator("b").inner_text()
        page.clock.fast_forward(2_000)
        expect(banner.locator("b")).not_to_have_text(before)
        expect(banner.get_by_role("button", name="Ask now")).to_be_focused()
        banner.get_by_role("button", name="Ask now").click()
        expect(row.locator("td.num").first).to_have_text("3")
        place.process.send_signal(signal.SIGCONT)
        expect(page.locator("#live")).to_have_text("live")
        expect(banner).to_have_count(0)
        expect(page.locator("body")).not_to_have_class(re.compile("stale"))
        page.close()


def test_race_a_banner_that_comes_pushes_no_row_away_from_the_pointer(
    tmp_path: Path, new_page: NewPage
) -> None:
    with serving(tmp_path / "data") as place:
        push(place, 1, "mail")
        page = new_page()
        page.clock.install()
        go(page, place, "queues")
        row = page.locator("tr[data-key=mail]")
        row.locator("td").last.hover()
        before = row.bounding_box()
        place.process.send_signal(signal.SIGSTOP)
        page.clock.fast_forward(6_000)
        expect(page.locator("body")).to_have_class(re.compile("stale"))
        expect(page.locator("#banners .banner")).to_have_count(0)
        assert row.bounding_box() == before
        page.mouse.move(1, 1)
        page.clock.fast_forward(1_000)
        expect(page.locator("#banners .banner.failed")).to_contain_text("No answer for")
        page.close()


def test_a_session_that_ends_becomes_a_form_that_leads_back_to_the_same_address(
    tmp_path: Path, new_page: NewPage
) -> None:
    with serving(tmp_path / "data", "--keys", str(key_file(tmp_path / "keys"))) as place:
        page = new_page()
        page.goto(f"{place.ui}#/queues")
        page.get_by_label("Access key").fill("readread")
        page.get_by_role("button", name="Sign in").click()
        expect(page.locator("#live")).to_have_text("live")
        expect(page.locator("h1")).to_have_text("Queues")
        # The same session elsewhere, such as another tab.
        page.evaluate(
            """async () => {
                const token = localStorage.getItem(`token ${location.pathname}`);
                await fetch("session", { method: "DELETE", headers: { "Zq-Session": token } });
            }"""
        )
        # The next request is refused.
        page.evaluate("location.hash = '#/jobs?f=status%3Adead'")
        key = page.get_by_label("Access key")
        expect(key).to_be_focused()
        expect(page.locator("body")).to_contain_text("Your session has ended")
        expect(page.locator("main table")).to_have_count(0)
        key.fill("readread")
        page.keyboard.press("Enter")
        expect(page.locator("h1")).to_have_text("Jobs")
        expect(page.locator("#live")).to_have_text("live")
        assert page.url.endswith("#/jobs?f=status%3Adead")
        page.close()


def test_a_server_with_another_version_asks_to_load_the_page_again(
    place: Place, page: Page
) -> None:
    page.route("**/ui/session", _other_version)
    go(page, place)
    expect(page.locator("#banners")).to_contain_text("The server has another version now.")


def _other_version(route: Route) -> None:
    reply = route.fetch()
    route.fulfill(response=reply, json=reply.json() | {"zq": "0.0.1"})
