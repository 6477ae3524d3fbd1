"""What other programs and pages of a browser can do about the session of an operator: nothing."""

import asyncio
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import NamedTuple

import aiohttp
import pytest
from conformance.site import Site
from conformance.streams import PATIENCE_S

from .place import key_file

FRIEND = "https://tools.example"

SETTINGS = {"no_admin": False, "admin_port": 0, "allow_origin": (FRIEND,)}

pytestmark = pytest.mark.settings(**SETTINGS)

ZQ = Path(__file__).parents[2] / "zq"


class SignedIn(NamedTuple):
    """What a browser and its page hold after a sign-in."""

    cookie: str
    token: str

    def headers(self, cookies: str = "{}") -> dict[str, str]:
        """The headers of a request of the page, with other cookies around its own."""
        return {"Cookie": cookies.format(self.cookie), "Zq-Session": self.token}


class Visitor:
    """Requests to the page's door, by a client that keeps no cookies itself."""

    def __init__(self, site: Site, http: aiohttp.ClientSession) -> None:
        self._url = f"{site.admin_url}/ui/"
        self._http = http
        self.port = site.admin_url.rpartition(":")[2]

    async def sign_in(self, name: str) -> SignedIn:
        async with self._http.post(f"{self._url}session", json={"key": name * 2}) as answer:
            assert answer.status == 200
            cookie = answer.headers["Set-Cookie"].partition(";")[0]
            return SignedIn(cookie, (await answer.json())["token"])

    async def status(self, headers: dict[str, str], path: str = "api/jobs") -> int:
        async with self._http.get(f"{self._url}{path}", headers=headers) as answer:
            return answer.status

    async def refused(self, name: str, **headers: str) -> tuple[int, str]:
        url, key = f"{self._url}session", {"key": name * 2}
        async with self._http.post(url, json=key, headers=headers) as answer:
            assert "Set-Cookie" not in answer.headers
            return answer.status, (await answer.json())["error"]


@pytest.fixture
async def visitor(site: Site, tmp_path: Path) -> AsyncIterator[Visitor]:
    await site.restart(keys=key_file(tmp_path / "keys"))
    jar = aiohttp.DummyCookieJar()
    async with aiohttp.ClientSession(trust_env=False, cookie_jar=jar) as http:
        yield Visitor(site, http)


@pytest.mark.parametrize(
    "cookies",
    [
        "{}",
        'a="b; {}',
        'theme={{"dark": true}}; {}; [x]=1',
        "k\u00e9=\u00e9; {}",
        ";;=;{};",
        "{0}x; zq_session=1; {0}",
        'a="' + "\\" * 6_000 + '"; {}',
    ],
    ids=["alone", "quote", "json", "other letters", "empty", "like it", "backslashes"],
)
async def test_cookies_of_other_programs_do_not_break_a_session(
    visitor: Visitor, cookies: str
) -> None:
    session = await visitor.sign_in("read")
    assert await visitor.status(session.headers(cookies)) == 200


async def test_a_cookie_of_the_session_s_name_from_another_port_does_not_hide_it(
    visitor: Visitor,
) -> None:
    session = await visitor.sign_in("read")
    name, _, value = session.cookie.partition("=")
    assert name == f"zq_session_{visitor.port}"
    assert await visitor.status(session.headers(f"{name}={'x' * len(value)}; {{}}")) == 200


async def test_what_a_browser_sends_to_every_port_of_the_host_is_no_session(
    visitor: Visitor,
) -> None:
    session, other = await visitor.sign_in("read"), await visitor.sign_in("all")
    assert await visitor.status({"Cookie": session.cookie}) == 401
    assert await visitor.status({"Zq-Session": session.token}) == 401
    assert await visitor.status({"Cookie": session.cookie, "Zq-Session": other.token}) == 401
    assert await visitor.status({"Cookie": session.cookie, "Zq-Session": "\u00e9"}) == 401
    assert await visitor.status(session.headers()) == 200


async def test_a_live_view_ends_with_its_session(visitor: Visitor, site: Site) -> None:
    mine, other = await visitor.sign_in("read"), await visitor.sign_in("read")
    url = f"{site.admin_url}/ui/live?topic=pulse"
    out = f"{site.admin_url}/ui/session"
    async with (
        aiohttp.ClientSession(trust_env=False) as http,
        http.get(url, headers=mine.headers()) as first,
        http.get(url, headers=other.headers()) as second,
        asyncio.timeout(PATIENCE_S),
    ):
        assert (first.status, second.status) == (200, 200)
        async with http.delete(out, headers=mine.headers()) as answer:
            assert answer.status == 204
        await first.content.read()
        assert await second.content.readline()


def test_no_part_of_the_server_parses_all_cookies() -> None:
    # This takes time that grows with the square of a cookie's length, before a key is asked for.
    parsers = re.compile(r"http\.cookies|SimpleCookie|request\.cookies")
    assert not [path for path in ZQ.rglob("*.py") if parsers.search(path.read_text())]


async def test_the_page_of_a_named_origin_does_not_ride_on_a_session_or_a_password(
    visitor: Visitor,
) -> None:
    session = await visitor.sign_in("all")
    password = aiohttp.encode_basic_auth("", "allall")
    for site in ({}, {"Sec-Fetch-Site": "cross-site"}, {"Sec-Fetch-Site": "same-site"}):
        friend = {"Origin": FRIEND, **site}
        assert await visitor.status({**session.headers(), **friend}) == 401
        assert await visitor.status({"Authorization": password, **friend}) == 401
        assert await visitor.status({"Authorization": "Bearer allall", **friend}) == 200
    assert await visitor.status({**session.headers(), "Sec-Fetch-Site": "same-origin"}) == 200


async def test_a_named_page_does_not_sign_in(visitor: Visitor) -> None:
    status, error = await visitor.refused("all", Origin=FRIEND)
    assert (status, "Bearer" in error) == (401, True)


@pytest.mark.parametrize("path", ["jobs", "queues"])
async def test_a_stored_password_is_not_a_named_page_s_at_the_native_door(
    site: Site, visitor: Visitor, path: str
) -> None:
    password = {"Authorization": aiohttp.encode_basic_auth("", "allall")}
    async with aiohttp.ClientSession(trust_env=False) as http:
        for headers, status in ((password, 200), ({**password, "Origin": FRIEND}, 401)):
            async with http.get(f"{site.url}/{path}", headers=headers) as answer:
                assert answer.status == status


@pytest.mark.settings(**SETTINGS, public_url="https://ops.example/queue/")
async def test_the_own_page_behind_a_proxy_keeps_its_session(visitor: Visitor) -> None:
    session = await visitor.sign_in("read")
    own = {"Origin": "https://ops.example", "Sec-Fetch-Site": "same-origin"}
    assert await visitor.status({**session.headers(), **own}) == 200
    friend = {"Origin": FRIEND, "Sec-Fetch-Site": "cross-site"}
    assert await visitor.status({**session.headers(), **friend}) == 401


async def test_a_key_that_signs_in_again_and_again_ends_no_session_of_another(
    visitor: Visitor,
) -> None:
    operator = await visitor.sign_in("all")
    sessions = [await visitor.sign_in("read") for _ in range(21)]
    assert await visitor.status(operator.headers()) == 200
    assert await visitor.status(sessions[0].headers()) == 401
    assert await visitor.status(sessions[1].headers()) == 200


@pytest.mark.parametrize("scope", ["take", "enqueue", "manage"])
async def test_a_key_that_cannot_use_the_page_does_not_sign_in(
    visitor: Visitor, scope: str
) -> None:
    status, error = await visitor.refused(scope)
    assert status == 403
    assert "does not have the scope read" in error


@pytest.mark.parametrize("scheme", ["Bearer", "Basic"])
async def test_credentials_of_other_letters_are_unknown(visitor: Visitor, scheme: str) -> None:
    assert await visitor.status({"Authorization": f"{scheme} \u00e9"}) == 401
