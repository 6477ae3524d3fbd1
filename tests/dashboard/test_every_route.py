"""Every route with every scope, and with every sign of a foreign page."""

import http.server
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import aiohttp
import httpx
import pytest
from conformance.client import JSON
from conformance.keyed import BODIES, declared_routes, request_to
from conformance.site import Site
from playwright.sync_api import Response

from zq.model.keys import KeyScope
from zq.operators.page.http.door import NOT_FOR_PAGES
from zq.operators.page.http.session import OFFERED

from .conftest import NewPage
from .place import Place, key_file

ADMIN = {"no_admin": False, "admin_port": 0}
SAFE = ("GET", "HEAD")
UNKNOWN_ID = "01JD0000000000000000000000"
ROUTES = {call: route for call, route in declared_routes().items() if call in BODIES}
CHANGING = [call for call in ROUTES if call[0] not in SAFE]

BROWSER = "Mozilla/5.0 (X11; Linux x86_64) Chrome/156"
FOREIGN = {
    "cross-site": {"Sec-Fetch-Site": "cross-site", "Origin": "http://evil.example"},
    "same-site": {"Sec-Fetch-Site": "same-site"},
    "origin": {"Origin": "http://evil.example", "User-Agent": BROWSER},
    "no-fetch-headers": {"User-Agent": BROWSER},
    "null": {"Origin": "null"},
    "rebinding": {"Host": "evil.example"},
    "rebinding-own": {"Host": "evil.example", "Sec-Fetch-Site": "same-origin"},
}
"""What requests of a foreign page look like, and of one whose name points here."""


@pytest.fixture
async def http_client() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(trust_env=False) as session:
        yield session


def call_of(method: str, path: str, id: str = UNKNOWN_ID) -> tuple[str, bytes | None]:
    """The path of a request to this route, and a body that it takes."""
    _, place, body, _ = request_to(JSON, method, path, queue="q", id=id)
    return place, body


@pytest.mark.settings(**ADMIN)
@pytest.mark.parametrize("scope", list(KeyScope), ids=str)
async def test_a_route_of_the_page_wants_its_scope(
    site: Site, tmp_path: Path, http_client: aiohttp.ClientSession, scope: KeyScope
) -> None:
    await site.restart(keys=key_file(tmp_path / "keys"))
    for (method, path), route in ROUTES.items():
        place, body = call_of(method, path)
        headers = {"Authorization": f"Bearer {scope * 2}", "Content-Type": "application/json"}
        url = f"{site.admin_url}/ui/api{place}"
        async with http_client.request(method, url, data=body, headers=headers) as answer:
            if route.scope not in OFFERED or path in NOT_FOR_PAGES:
                # The names of some look like the id of a job.
                assert answer.status in (403, 404, 405), (method, path)
            else:
                assert (answer.status == 403) == (route.scope != scope), (method, path)


@pytest.mark.settings(**ADMIN)
@pytest.mark.parametrize("signs", FOREIGN)
async def test_no_foreign_page_changes_anything_by_any_route(
    site: Site, http_client: aiohttp.ClientSession, signs: str
) -> None:
    job = {"queue": "q", "type": "t", "payload": 1}
    async with http_client.post(f"{site.url}/jobs", json=job) as answer:
        id = (await answer.json())["id"]
    async with http_client.get(f"{site.url}/jobs") as answer:
        before = await answer.text()
    calls = [
        (method, url + place, body)
        for method, path in CHANGING
        for place, body in [call_of(method, path, id)]
        for url in (site.url, f"{site.admin_url}/ui/api")
    ]
    calls += [(m, f"{site.admin_url}/ui/session", b'{"key": "x"}') for m in ("POST", "DELETE")]
    calls += [
        ("POST", f"{site.admin_url}/{name}", b"{}")
        for name in ("backup", "compact", "damage/acknowledge")
    ]
    for method, url, body in calls:
        async with http_client.request(method, url, data=body, headers=FOREIGN[signs]) as answer:
            assert answer.status == 403 or (answer.status in (404, 405) and "/ui/api" in url), url
    async with http_client.get(f"{site.url}/jobs") as answer:
        assert await answer.text() == before


ATTACK = """async calls => {
    for (const [url, body] of calls) {
        for (const type of ["text/plain", "application/json"]) {
            for (const mode of ["no-cors", "cors"]) {
                for (const method of ["POST", "PUT", "PATCH", "DELETE"]) {
                    const headers = {"Content-Type": type};
                    await fetch(url, {method, mode, body, headers}).catch(() => undefined);
                }
            }
        }
        navigator.sendBeacon(url, body);
        const form = document.createElement("form");
        const frame = document.createElement("iframe");
        frame.name = form.target = "there";
        Object.assign(form, {action: url, method: "post", enctype: "text/plain"});
        document.body.append(frame, form);
        form.submit();
        await new Promise(resolve => { frame.onload = resolve; });
        frame.remove();
        form.remove();
    }
}"""


@pytest.fixture
def elsewhere() -> Iterator[str]:
    """A page of another origin: another port, and another name."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(b"<!doctype html><title>evil</title>")

        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Quiet) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://localhost:{server.server_port}/"
        server.shutdown()


def test_a_page_of_another_origin_gets_403_in_a_browser(
    place: Place, ids: dict[str, str], new_page: NewPage, elsewhere: str
) -> None:
    def jobs() -> str:
        return httpx.get(f"{place.primary}/jobs?limit=2000", trust_env=False).text

    calls = []
    for path in ("/jobs", "/jobs/cancel", f"/jobs/{ids['dead']}/requeue", "/reset"):
        body = '{"queue": "evil", "type": "t", "payload": 1}' if path == "/jobs" else ""
        calls += [[f"{url}{path}", body] for url in (place.primary, f"{place.ui}api")]
    before, statuses = jobs(), set[int]()

    def heard(answer: Response) -> None:
        if answer.url.startswith((place.primary, place.admin)):
            statuses.add(answer.status)

    page = new_page()
    page.on("response", heard)
    page.goto(elsewhere)
    page.evaluate(ATTACK, calls)
    page.close()
    assert statuses == {403}
    assert jobs() == before
