"""The files of the page, where they are served, and sessions, by plain requests."""

import gzip
import re
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest
from conformance.site import Site

from zq.model.keys import KeyScope
from zq.operators.page.http.page import Assets

from .place import key_file

ADMIN = {"no_admin": False, "admin_port": 0}

pytestmark = pytest.mark.settings(**ADMIN)

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src"
    " 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none';"
    " require-trusted-types-for 'script'; trusted-types 'none'"
)


@pytest.fixture
async def http() -> AsyncIterator[aiohttp.ClientSession]:
    jar = aiohttp.CookieJar(unsafe=True)
    async with aiohttp.ClientSession(
        trust_env=False, cookie_jar=jar, auto_decompress=False
    ) as session:
        yield session


async def test_every_file_is_safe_and_comes_zipped_by_a_name_that_never_changes(
    site: Site, http: aiohttp.ClientSession
) -> None:
    async with http.get(f"{site.admin_url}/ui/", headers={"Accept-Encoding": "gzip"}) as answer:
        text = gzip.decompress(await answer.read()).decode()
        pages = [answer]
    places = re.findall(r'(?:href|src)="(static/[^"]+)"', text)
    assert len(places) == 7
    for place in places:
        async with http.get(f"{site.admin_url}/ui/{place}") as answer:
            pages.append(answer)
            assert answer.status == 200
            assert answer.headers["Cache-Control"] == "public, max-age=31536000, immutable"
    for answer in pages:
        assert answer.headers["Content-Encoding"] == "gzip"
        assert answer.headers["Content-Security-Policy"] == POLICY
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert answer.headers["Referrer-Policy"] == "no-referrer"
        assert answer.headers["Cross-Origin-Opener-Policy"] == "same-origin"


async def test_a_client_without_gzip_gets_the_plain_bytes(
    site: Site, http: aiohttp.ClientSession
) -> None:
    url = f"{site.admin_url}/ui/static/{Assets().version}/main.js"
    async with http.get(url, headers={"Accept-Encoding": "identity"}) as answer:
        assert "Content-Encoding" not in answer.headers
        assert await answer.read() == Assets().named["main.js"].plain


async def test_another_version_s_file_is_not_found(site: Site, http: aiohttp.ClientSession) -> None:
    async with http.get(f"{site.admin_url}/ui/static/{'0' * 16}/main.js") as answer:
        assert answer.status == 404


async def test_the_version_changes_with_any_file(tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text("@version@")
    (tmp_path / "a.js").write_text("1")
    one = Assets(tmp_path)
    (tmp_path / "a.js").write_text("2")
    two = Assets(tmp_path)

    assert one.version != two.version
    assert two.page.plain == two.version.encode()


def test_no_file_has_code_or_style_in_the_page_or_makes_html_of_text() -> None:
    assets = Assets()
    page = assets.page.plain.decode()
    assert not re.search(r"<style|style=|\son\w+=|<script>", page)
    for name, asset in assets.named.items():
        text = asset.plain.decode()
        forbidden = r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|new Function"
        assert not re.search(forbidden, text), name
        assert not re.search(r"""(src|href)=["']?https?:|from ["']https?:|@import""", text), name


# Where it is


async def test_the_page_lies_beyond_a_slash(site: Site, http: aiohttp.ClientSession) -> None:
    async with http.get(f"{site.admin_url}/ui", allow_redirects=False) as answer:
        assert (answer.status, answer.headers["Location"]) == (308, "ui/")


async def test_the_primary_listener_says_where_the_page_is(
    site: Site, http: aiohttp.ClientSession
) -> None:
    async with http.get(f"{site.url}/") as answer:
        assert await answer.json() == {"ui": f"{site.admin_url}/ui/"}
    async with http.get(f"{site.url}/ui/") as answer:
        assert answer.status == 404


@pytest.mark.settings(**ADMIN, ui="primary")
async def test_the_page_can_be_on_the_primary_listener(
    site: Site, http: aiohttp.ClientSession
) -> None:
    async with http.get(f"{site.url}/") as answer:
        assert await answer.json() == {"ui": "/ui/"}
    async with http.get(f"{site.url}/ui/") as answer:
        assert answer.status == 200
    async with http.get(f"{site.admin_url}/ui/") as answer:
        assert answer.status == 404


@pytest.mark.settings(**ADMIN, ui="off")
async def test_the_page_can_be_nowhere(site: Site, http: aiohttp.ClientSession) -> None:
    for url in (f"{site.url}/", f"{site.url}/ui/", f"{site.admin_url}/ui/"):
        async with http.get(url) as answer:
            assert answer.status == 404


# Who may do what


@pytest.mark.parametrize(
    "headers",
    [{"Sec-Fetch-Site": "cross-site"}, {"Origin": "http://evil.example"}, {"Host": "evil.example"}],
    ids=str,
)
async def test_pages_of_other_sites_are_kept_out(
    site: Site, http: aiohttp.ClientSession, headers: dict[str, str]
) -> None:
    for method, path in (("GET", "live"), ("POST", "api/jobs"), ("POST", "session")):
        url = f"{site.admin_url}/ui/{path}"
        async with http.request(method, url, headers=headers, json={}) as answer:
            assert answer.status == 403


PUBLIC = "https://ops.example.org/queue/"


@pytest.mark.settings(**ADMIN, public_url=PUBLIC)
async def test_a_public_url_is_prefix_origin_host_and_flag_of_the_cookie_at_once(
    site: Site, http: aiohttp.ClientSession, keys: Path
) -> None:
    await site.restart(keys=keys)
    async with http.get(f"{site.url}/", headers={"Authorization": "Bearer allall"}) as answer:
        assert await answer.json() == {"ui": f"{PUBLIC}ui/"}
    for prefix in ("/queue", ""):
        for own in ({"Host": "ops.example.org"}, {"Origin": "https://ops.example.org"}):
            url = f"{site.admin_url}{prefix}/ui/session"
            async with http.post(url, json={"key": "allall"}, headers=own) as answer:
                assert answer.status == 200
                assert answer.headers["Set-Cookie"].endswith("; Secure")
        async with http.get(f"{site.admin_url}{prefix}/ui", allow_redirects=False) as answer:
            assert (answer.status, answer.headers["Location"]) == (308, "ui/")
    for foreign in ({"Host": "evil.example"}, {"Origin": "http://ops.example.org"}):
        async with http.post(f"{site.admin_url}/ui/session", headers=foreign) as answer:
            assert answer.status == 403
    # It is about the listener that has the page.
    async with http.get(f"{site.url}/health", headers={"Host": "ops.example.org"}) as answer:
        assert answer.status == 403


@pytest.mark.settings(**ADMIN, ui_read_only=True)
async def test_a_read_only_page_changes_nothing(site: Site, http: aiohttp.ClientSession) -> None:
    async with http.get(f"{site.admin_url}/ui/session") as answer:
        session = await answer.json()
    assert (session["read_only"], session["scopes"]) == (True, ["history", "read", "reveal"])
    job = {"queue": "mail", "type": "t", "payload": 1}
    async with http.post(f"{site.admin_url}/ui/api/jobs", json=job) as answer:
        assert answer.status == 405
    async with http.delete(f"{site.admin_url}/ui/api/jobs") as answer:
        assert answer.status == 405
    async with http.get(f"{site.admin_url}/ui/api/jobs") as answer:
        assert (await answer.json())["jobs"] == []


@pytest.mark.parametrize("path", ["reset", "jobs/take", "events", "metrics"])
async def test_the_page_s_api_has_no_route_that_the_page_does_not_need(
    site: Site, http: aiohttp.ClientSession, path: str
) -> None:
    async with http.post(f"{site.admin_url}/ui/api/{path}") as answer:
        assert answer.status in (404, 405)


@pytest.fixture
def keys(tmp_path: Path) -> Path:
    return key_file(tmp_path / "keys")


@pytest.fixture
async def keyed(site: Site, keys: Path) -> Site:
    await site.restart(keys=keys)
    return site


async def sign_in(http: aiohttp.ClientSession, site: Site, name: str) -> aiohttp.ClientResponse:
    answer = await http.post(f"{site.admin_url}/ui/session", json={"key": name * 2})
    if answer.status == 200:
        http.headers["Zq-Session"] = (await answer.json())["token"]
    return answer


async def statuses(http: aiohttp.ClientSession, site: Site) -> int:
    async with http.get(f"{site.admin_url}/ui/api/jobs") as answer:
        return answer.status


async def test_a_key_is_swapped_for_a_cookie_that_no_script_and_no_other_site_gets(
    keyed: Site, http: aiohttp.ClientSession
) -> None:
    assert await statuses(http, keyed) == 401
    answer = await sign_in(http, keyed, "all")
    cookie = answer.headers["Set-Cookie"]
    assert "; HttpOnly; SameSite=Strict; Max-Age=43200" in cookie
    assert "Path" not in cookie
    assert "Secure" not in cookie
    assert await statuses(http, keyed) == 200
    async with http.delete(f"{keyed.admin_url}/ui/session") as answer:
        assert answer.status == 204
    assert await statuses(http, keyed) == 401


async def test_a_session_behind_tls_is_for_tls_only(
    keyed: Site, http: aiohttp.ClientSession
) -> None:
    own = keyed.admin_url.replace("http:", "https:")
    url = f"{keyed.admin_url}/ui/session"
    async with http.post(url, json={"key": "allall"}, headers={"Origin": own}) as answer:
        assert answer.headers["Set-Cookie"].endswith("; Secure")


async def test_a_wrong_key_opens_no_session_and_no_window_of_the_browser(
    keyed: Site, http: aiohttp.ClientSession
) -> None:
    answer = await sign_in(http, keyed, "wrong")
    assert answer.status == 401
    assert "Set-Cookie" not in answer.headers
    assert "WWW-Authenticate" not in answer.headers


@pytest.mark.parametrize(
    ("waits", "status"), [([3599, 3599], 200), ([3600], 401), ([3599] * 12 + [12], 401)], ids=str
)
async def test_a_session_ends_after_an_idle_hour_and_after_twelve_hours(
    keyed: Site, http: aiohttp.ClientSession, waits: list[int], status: int
) -> None:
    await sign_in(http, keyed, "all")
    for wait in waits:
        keyed.clock.advance(wait * 1_000)
        last = await statuses(http, keyed)
    assert last == status


def without(keys: Path, name: str) -> None:
    """Revoke a key."""
    lines = keys.read_text().splitlines(keepends=True)
    keys.write_text("".join(line for line in lines if not line.startswith(f"{name} ")))


async def test_a_session_ends_with_its_key(
    keyed: Site, keys: Path, http: aiohttp.ClientSession
) -> None:
    await sign_in(http, keyed, "all")
    without(keys, "all")
    keyed.server.reload()
    assert await statuses(http, keyed) == 401


async def test_a_session_may_do_what_its_key_may(keyed: Site, http: aiohttp.ClientSession) -> None:
    calls = {
        KeyScope.READ: ("GET", "jobs"),
        KeyScope.MANAGE: ("POST", "jobs/cancel"),
        KeyScope.ENQUEUE: ("POST", "jobs"),
    }
    held_by: dict[str, set[KeyScope]] = {
        "read": {KeyScope.READ},
        "reader-changer": {KeyScope.READ, KeyScope.MANAGE},
        "reader-sender": {KeyScope.READ, KeyScope.ENQUEUE},
    }
    for name, held in held_by.items():
        answer = await sign_in(http, keyed, name)
        assert set((await answer.json())["scopes"]) == held
        for scope, (method, path) in calls.items():
            url = f"{keyed.admin_url}/ui/api/{path}"
            body = {"queue": "q", "type": "t", "payload": 1} if path == "jobs" else {}
            async with http.request(method, url, json=body) as reply:
                assert (reply.status == 403) == (scope not in held), (name, path)
