"""Access keys: which requests they admit, and the answers to wrong keys."""

import asyncio
import base64
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from .client import JSON, Client, Reply, Wire, new_job
from .keyed import (
    KEYS,
    client_of,
    declared_routes,
    keys_in,
    request_to,
    secret,
    walk,
    write_keys,
)
from .raw import RawConnection, exchange
from .site import Site
from .streams import PATIENCE_S, pause

UNKNOWN_ID = "01JD0000000000000000000000"


pytestmark = pytest.mark.settings(keys=keys_in)


async def ask(client: Client, method: str, path: str) -> Reply:
    """A request to a route, which must not be answered by a stream."""
    return await client.send(*request_to(client.wire, method, path, queue="q", id=UNKNOWN_ID))


def test_every_route_declares_its_scope() -> None:
    routes = declared_routes()

    open_to_all = {path for (_, path), route in routes.items() if route.scope is None}
    assert open_to_all == {"/health", "/healthz", "/version", "/openapi.json"}
    assert {path for (_, path), route in routes.items() if route.whole} == {
        *(
            "/audit",
            "/cleaning",
            "/history",
            "/keys",
            "/marks",
            "/metrics",
            "/reset",
            "/status",
            "/budgets",
            "/budgets/{key}",
            "/budgets/{key}/hold",
            "/producers",
            "/producers/{name}",
            "/devices",
            "/devices/{name}",
            "/forward",
            "/forward/{name}",
            "/forward/{name}/pause",
            "/forward/{name}/resume",
        ),
    }


async def test_each_route_wants_a_key_with_its_scope(site: Site, wire: Wire) -> None:
    routes = declared_routes()
    async with AsyncExitStack() as stack:

        async def entered(client: Client) -> Client:
            return await stack.enter_async_context(client)

        nobody, stranger = await entered(Client(site, wire)), await entered(Client(site, wire, "x"))
        holders = {name: await entered(client_of(site, wire, name)) for name in KEYS}
        for method, path in walk():
            scope, where = routes[method, path].scope, (method, path)
            for client, expected in (
                (nobody, (401, "unauthorized")),
                (stranger, (401, "unauthorized")),
                (holders[f"not-{scope}"] if scope else nobody, (403, "scope_missing")),
            ):
                reply = await ask(client, method, path)
                if scope is None:
                    assert reply.status == 200, where
                    continue
                assert (reply.status, reply.headers["zq-error"]) == expected, where
                assert ("www-authenticate" in reply.headers) is (reply.status == 401), where
                assert method == "HEAD" or reply.error, where
            client = holders[f"only-{scope}" if scope else "root"]
            if where == ("GET", "/jobs/take"):
                await client.take()
            elif where == ("GET", "/events"):
                await client.listen()
            else:
                assert (await ask(client, method, path)).status not in (401, 403), where


@pytest.mark.parametrize("path", ["/nothing", "/jobs/a/b/c"])
async def test_what_does_not_exist_is_told_to_holders_of_keys_only(
    site: Site, wire: Wire, path: str
) -> None:
    async with Client(site, wire) as stranger, client_of(site, wire, "only-read") as holder:
        assert (await stranger.get(path)).status == 401
        assert (await holder.get(path)).status == 404
        assert (await holder.send("PUT", "/jobs")).status == 405


def basic(user: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


CREDENTIALS = [
    (f"Bearer {secret('root')}", 200),
    (f"bearer   {secret('root')} ", 200),
    (basic("root", secret("root")), 200),
    (basic("", secret("root")), 200),
    (basic("shop", secret("root")), 401),
    (basic("root", "root"), 401),
    (basic(secret("root"), ""), 401),
    ("Bearer", 401),
    ("Bearer ", 401),
    ("Bearer root", 401),
    (secret("root"), 401),
    ("Basic", 401),
    ("Basic !", 401),
    (f"Basic {base64.b64encode(b'rootroot').decode()}", 401),
    (f"Digest {secret('root')}", 401),
    ("", 401),
]


async def test_a_secret_comes_as_bearer_or_as_the_password_of_basic(site: Site) -> None:
    for header, status in CREDENTIALS:
        request = f"GET /jobs/count HTTP/1.1\r\nHost: q\r\nAuthorization: {header}\r\n\r\n"

        reply = await exchange(site.port, request.encode())

        assert reply.status == status
        if status == 401:
            assert secret("root") not in reply.doc["error"]
            assert reply.headers["www-authenticate"].startswith("Bearer ")


async def test_bytes_that_are_no_text_are_just_a_wrong_secret(site: Site) -> None:
    request = b"GET /queues HTTP/1.1\r\nHost: q\r\nAuthorization: Bearer \xff\xfe\r\n\r\n"

    assert (await exchange(site.port, request)).status == 401


async def test_a_refusal_does_not_wait_for_the_body(site: Site) -> None:
    for name, status in (("nobody", 401), ("only-read", 403)):
        head = (
            "POST /jobs/bulk HTTP/1.1\r\nHost: q\r\nContent-Length: 1000000\r\n"
            f"Authorization: Bearer {secret(name)}\r\n\r\n"
        )
        # Of a million bytes none is ever sent.
        assert (await exchange(site.port, head.encode())).status == status


async def test_a_body_that_is_held_back_is_asked_for_only_from_who_may_send_it(site: Site) -> None:
    head = (
        "POST /jobs HTTP/1.1\r\nHost: q\r\nContent-Length: {}\r\nExpect: 100-continue\r\n"
        "Authorization: Bearer {}\r\n\r\n"
    )
    body = JSON.encode(new_job())
    async with await RawConnection.open(site.port) as connection:
        await connection.send(head.format(len(body), secret("only-enqueue")).encode())
        assert (await connection.reply()).status == 100
        await connection.send(body)
        assert (await connection.reply()).status == 201

    assert (await exchange(site.port, head.format(9, "wrong").encode())).status == 401


async def test_without_keys_nobody_is_asked_for_one(client: Client, tmp_path: Path) -> None:
    plain = Site(tmp_path / "plain", {})
    await plain.start()
    async with Client(plain, client.wire, "whatever") as other:
        assert (await other.get("/queues")).status == 200
    await plain.stop()


async def test_a_key_that_is_revoked_is_refused_and_its_streams_end(
    site: Site, wire: Wire, tmp_path: Path
) -> None:
    async with client_of(site, wire, "shop") as shop, client_of(site, wire, "root") as root:
        job = await shop.enqueue(queue="shop-a")
        ending = await shop.take(prefetch=1)
        staying = await root.take(prefetch=1)
        assert (await ending.job())["id"] == job["id"]

        listening = await shop.listen()

        write_keys(tmp_path / "keys", "shop")
        site.server.reload()

        await ending.ended()
        await listening.ended()
        assert (await shop.get("/queues")).status == 401
        # What it held goes to the stream that stays.
        assert (await staying.job())["id"] == job["id"]


async def test_a_key_that_is_revoked_gets_nothing_by_a_claim_that_waits(
    site: Site, wire: Wire, tmp_path: Path
) -> None:
    async with client_of(site, wire, "shop") as shop, client_of(site, wire, "root") as root:
        body = {"holder": "h", "wait_ms": 30_000}
        waiting = asyncio.create_task(shop.post("/queues/shop-a/claim", body))
        async with asyncio.timeout(PATIENCE_S):
            while not site.server.engine.streams.claiming:
                await pause()

        write_keys(tmp_path / "keys", "shop")
        site.server.reload()

        assert (await waiting).doc == {"jobs": []}
        job = await root.enqueue(queue="shop-a")
        assert (await root.job(job["id"]))["status"] == "ready"


async def test_a_key_file_that_has_become_wrong_changes_nothing(
    site: Site, wire: Wire, tmp_path: Path
) -> None:
    (tmp_path / "keys").write_text("nonsense\n")

    site.server.reload()

    async with client_of(site, wire, "root") as root:
        assert (await root.get("/queues")).status == 200


async def test_an_added_key_is_good_from_the_next_reload_on(site: Site, wire: Wire) -> None:
    path = write_keys(site.root.parent / "keys", "root")
    site.server.reload()
    async with client_of(site, wire, "root") as root:
        assert (await root.get("/queues")).status == 401
        write_keys(path)
        assert (await root.get("/queues")).status == 401
        site.server.reload()
        assert (await root.get("/queues")).status == 200
