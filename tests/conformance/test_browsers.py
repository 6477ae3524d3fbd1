"""Requests of browsers for a page, and which pages are admitted: by raw requests."""

import httpx
import pytest

from .raw import RawConnection, RawReply, exchange
from .site import Site

OWN = "own"
"""Stands for the server's own `host:port` in a header."""

WITH_BODY = "POST /jobs"
REQUESTS = (
    "GET /queues",
    "GET /jobs/take",
    "POST /reset",
    WITH_BODY,
    "GET /nothing",
    "OPTIONS /jobs",
)


async def ask(site: Site, request: str, *headers: str) -> RawReply:
    """One request; of its body, if it announces one, no byte is ever sent."""
    own = f"localhost:{site.port}"
    lines = [f"{request} HTTP/1.1", *(line.replace(OWN, own) for line in headers)]
    if request == WITH_BODY:
        lines.append("Content-Length: 1000000")
    return await exchange(site.port, "\r\n".join([*lines, "", ""]).encode())


FOREIGN = [
    ("foreign_page", ["Host: own", "Sec-Fetch-Site: cross-site"]),
    ("foreign_page", ["Host: own", "Sec-Fetch-Site: same-site"]),
    ("foreign_page", ["Host: own", "Sec-Fetch-Site: "]),
    ("foreign_page", ["Host: own", "Sec-Fetch-Site: cross-site", "Origin: http://own"]),
    ("foreign_page", ["Host: own", "Origin: https://evil.example"]),
    ("foreign_page", ["Host: own", "Origin: null"]),
    ("foreign_page", ["Host: own", "Origin: "]),
    ("foreign_page", ["Host: own", "Origin: http://localhost:1"]),
    ("foreign_page", ["Host: own", "Origin: own"]),
    ("foreign_page", ["Host: own", "Origin: http://own.evil.example"]),
    ("foreign_host", ["Host: evil.example"]),
    ("foreign_host", ["Host: localhost.evil.example", "Sec-Fetch-Site: same-origin"]),
    ("foreign_host", ["Host: evil.example", "Origin: http://evil.example"]),
    ("foreign_host", ["Host: 10.0.0.1"]),
    ("foreign_host", ["Host: 0.0.0.0"]),
    ("foreign_host", ["Host: [::2]:80"]),
    ("foreign_host", ["Host: "]),
]


async def test_a_foreign_page_is_refused_before_the_body_is_read(site: Site) -> None:
    for code, headers in FOREIGN:
        for request in REQUESTS:
            reply = await ask(site, request, *headers)
            assert (reply.status, reply.headers["zq-error"]) == (403, code), request
            assert reply.doc["error"]


WELCOME = [
    ["Host: own"],
    ["Host: own", "Sec-Fetch-Site: same-origin", "Origin: http://own"],
    ["Host: own", "Sec-Fetch-Site: none"],
    # Behind a proxy that ends TLS and hands on the name that the browser knows.
    ["Host: own", "Origin: https://own"],
    ["Host: LOCALHOST:1", "Origin: http://localhost:1"],
    ["Host: localhost"],
    ["Host: localhost."],
    ["Host: queue.localhost:80"],
    ["Host: 127.0.0.1:7890"],
    ["Host: 127.1.2.3"],
    ["Host: [::1]:7890"],
    ["Host: [::1]"],
    ["Host: [::ffff:127.0.0.1]"],
]


async def test_own_pages_users_and_clients_that_are_no_browsers_get_in(site: Site) -> None:
    for headers in WELCOME:
        # The second time the server knows the name already.
        for _ in range(2):
            assert (await ask(site, "GET /queues", *headers)).status == 200


CHROMIUM = "User-Agent: Mozilla/5.0 (X11; Linux x86_64) Chrome/140.0.0.0"


BY_BROWSERS = [
    ("GET /jobs/take", [CHROMIUM], 403),
    ("POST /reset", [CHROMIUM], 403),
    ("DELETE /jobs", [CHROMIUM], 403),
    # An address that somebody has typed; no page of another site sees the answer.
    ("GET /queues", [CHROMIUM], 200),
    ("GET /metrics", [CHROMIUM], 200),
    ("GET /favicon.ico", [CHROMIUM], 404),
    ("DELETE /jobs", [CHROMIUM, "Origin: http://own"], 200),
    ("DELETE /jobs", [CHROMIUM, "Sec-Fetch-Site: same-origin"], 200),
    ("DELETE /jobs", ["User-Agent: curl/8.14"], 200),
]


async def test_a_browser_that_does_not_say_for_which_page_it_asks_may_only_read(site: Site) -> None:
    for request_line, headers, status in BY_BROWSERS:
        assert (await ask(site, request_line, "Host: own", *headers)).status == status


@pytest.mark.settings(allow_host=("queue.example", "10.1.2.3", "fd00::1"))
@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("queue.example", 200),
        ("Queue.Example.:81", 200),
        ("10.1.2.3:81", 200),
        ("[fd00:0::1]:81", 200),
        ("other.queue.example", 403),
        ("10.1.2.4", 403),
    ],
)
async def test_further_names_are_those_of_allow_host(site: Site, host: str, status: int) -> None:
    assert (await ask(site, "GET /queues", f"Host: {host}")).status == status


@pytest.mark.settings(allow_origin=("https://tools.example", "http://tools.example:81"))
@pytest.mark.parametrize(
    ("headers", "status"),
    [
        (["Origin: https://tools.example"], 200),
        (["Origin: HTTP://Tools.example:81"], 200),
        (["Origin: http://tools.example"], 403),
        (["Origin: https://tools.example:444"], 403),
        (["Origin: https://tools.example.evil.example"], 403),
        (["Origin: https://tools.example", "Sec-Fetch-Site: cross-site"], 200),
        # A request without CORS, as of an image, does not say which page it is for.
        (["Sec-Fetch-Site: cross-site"], 403),
    ],
    ids=str,
)
async def test_further_origins_are_those_of_allow_origin(
    site: Site, headers: list[str], status: int
) -> None:
    assert (await ask(site, "GET /queues", "Host: own", *headers)).status == status


@pytest.mark.settings(allow_origin=("https://tools.example",))
@pytest.mark.parametrize("request_line", ["GET /queues", "GET /api/stats", "GET /nothing"])
async def test_a_page_of_a_named_origin_may_read_answers_and_errors(
    site: Site, request_line: str
) -> None:
    named = await ask(site, request_line, "Host: own", "Origin: https://tools.example")
    assert named.headers["access-control-allow-origin"] == "https://tools.example"
    assert named.headers["vary"] == "Origin"
    assert "Retry-After" in named.headers["access-control-expose-headers"]
    other = await ask(site, request_line, "Host: own", "Origin: https://evil.example")
    assert other.status == 403
    assert not [name for name in other.headers if name.startswith("access-control-")]


@pytest.mark.settings(allow_origin=("https://tools.example",))
async def test_a_browser_asks_first_and_is_told_what_such_a_page_may_send(site: Site) -> None:
    wanted = (
        "Host: own",
        "Sec-Fetch-Site: cross-site",
        "Access-Control-Request-Method: PUT",
        "Access-Control-Request-Headers: authorization,content-type",
    )
    told = await ask(site, "OPTIONS /api/topic-configs/t", "Origin: https://tools.example", *wanted)
    assert told.status == 204
    assert "PUT" in told.headers["access-control-allow-methods"]
    assert told.headers["access-control-allow-headers"] == "authorization,content-type"
    assert "access-control-allow-credentials" not in told.headers
    evil = await ask(site, "OPTIONS /api/topic-configs/t", "Origin: https://evil.example", *wanted)
    assert evil.status == 403


@pytest.mark.settings(allow_origin=("https://tools.example",))
async def test_streams_and_dequeues_may_be_read_by_such_a_page_too(site: Site) -> None:
    address = f"http://localhost:{site.port}"
    headers = {"Origin": "https://tools.example", "Sec-Fetch-Site": "cross-site"}
    async with httpx.AsyncClient(base_url=address, headers=headers, trust_env=False) as page:
        taken = await page.post("/api/messages/dequeue", json={"topic": "t"})
        assert taken.headers["access-control-allow-origin"] == "https://tools.example"
        async with page.stream("GET", "/jobs/take") as stream:
            assert stream.headers["access-control-allow-origin"] == "https://tools.example"


async def test_a_client_of_http_1_0_needs_no_host(site: Site) -> None:
    reply = await exchange(site.port, b"GET /queues HTTP/1.0\r\n\r\n")

    assert reply.status == 200


async def test_a_page_is_not_asked_for_its_body(site: Site) -> None:
    head = (
        b"POST /jobs HTTP/1.1\r\nHost: localhost\r\nSec-Fetch-Site: cross-site\r\n"
        b"Content-Length: 9\r\nExpect: 100-continue\r\n\r\n"
    )

    assert (await exchange(site.port, head)).status == 403


async def test_a_refusal_may_cite_a_host_that_is_no_text(site: Site) -> None:
    head = b"GET /queues HTTP/1.1\r\nHost: lo\x92calhost\r\nConnection: close\r\n\r\n"

    reply = await exchange(site.port, head)

    assert reply.status == 403
    assert "lo?calhost" in reply.doc["error"]


async def test_one_refusal_does_not_end_the_connection(site: Site) -> None:
    async with await RawConnection.open(site.port) as connection:
        for host, status in (("evil.example", 403), ("localhost", 200), ("evil.example", 403)):
            await connection.send(f"GET /queues HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
            assert (await connection.reply()).status == status


@pytest.mark.parametrize(
    ("authority", "headers", "status"),
    [
        ("localhost:1", {}, 200),
        ("evil.example", {}, 403),
        ("localhost", {"Sec-Fetch-Site": "cross-site"}, 403),
        ("localhost", {"Origin": "https://evil.example"}, 403),
        ("localhost", {"Origin": "http://localhost"}, 200),
    ],
)
async def test_http_2_is_judged_alike(
    site: Site, authority: str, headers: dict[str, str], status: int
) -> None:
    # httpx makes the header Host into :authority.
    async with httpx.AsyncClient(http1=False, http2=True, trust_env=False) as client:
        reply = await client.get(f"{site.url}/queues", headers={"Host": authority, **headers})

    assert (reply.http_version, reply.status_code) == ("HTTP/2", status)
