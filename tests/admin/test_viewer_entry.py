"""Which viewers get in: their sites, their keys, and how many there may be."""

import asyncio
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from conformance.client import JSON, Client
from conformance.keyed import secret, write_keys
from conformance.site import Site
from conformance.streams import PATIENCE_S

from zq.operators.admin.engine import MOST_VIEWERS, Viewers

from .viewing import ADMIN, Watcher, watching

pytestmark = pytest.mark.settings(**ADMIN)


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Origin": "https://evil.example"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Host": "rebound.example"}, 403),
    ],
)
async def test_a_page_of_another_site_opens_no_socket(
    site: Site, headers: dict[str, str], status: int
) -> None:
    with pytest.raises(aiohttp.WSServerHandshakeError) as refusal:
        async with watching(site, headers=headers):
            pass
    assert refusal.value.status == status
    async with watching(site, headers={"Origin": site.admin_url}) as own:
        await own.hear_of("job_snapshot")


def bearing(name: str) -> dict[str, Any]:
    return {"headers": {"Authorization": f"Bearer {secret(name)}"}}


async def test_keys_hold_for_viewers(tmp_path: Path) -> None:
    keys = write_keys(tmp_path / "keys")
    site = Site(tmp_path / "data", {**ADMIN, "keys": keys})
    await site.start()
    for options, status in [({}, 401), (bearing("not-read"), 403), (bearing("shop"), 403)]:
        with pytest.raises(aiohttp.WSServerHandshakeError) as refusal:
            async with watching(site, **options):
                pass
        assert refusal.value.status == status

    async with (
        Client(site, JSON, secret("root")) as client,
        watching(site, **bearing("only-read")) as reader,
        watching(site, **bearing("root")) as owner,
    ):
        id = (await client.enqueue())["id"]
        await reader.say(type="delete_job", id=id)
        assert (await reader.hear_of("error"))["code"] == "scope_missing"
        assert await client.exists(id)
        await owner.say(type="delete_job", id=id)
        await client.until_gone(id)
        await owner.say(type="delete_job", id=id)
        await owner.hear_of("error")
        (action,) = (await client.get("/audit")).doc["actions"]
        told = (action["method"], action["path"], action["status"], action["actor"])
        assert told == ("DELETE", f"/jobs/{id}", 204, "root")
        assert action["address"] == "127.0.0.1"

        # A key that is taken away takes the viewer with it.
        write_keys(keys, "only-read")
        site.server.reload()
        await ended(reader)
        assert not owner.socket.closed
    await site.stop()


async def ended(watcher: Watcher) -> int | None:
    """The code with which the server closes; what comes before is dropped."""
    async with asyncio.timeout(PATIENCE_S):
        while not watcher.socket.closed:
            await watcher.socket.receive()
    return watcher.socket.close_code


async def test_what_is_no_upgrade_is_told_so(site: Site) -> None:
    async with (
        aiohttp.ClientSession(trust_env=False) as http,
        http.get(f"{site.admin_url}/events") as answer,
    ):
        assert (answer.status, answer.headers["Upgrade"]) == (426, "websocket")
        assert "WebSocket" in (await answer.json())["error"]


async def test_viewers_are_bounded(site: Site) -> None:
    viewers = site.server.services.engine[Viewers]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("zq.operators.admin.engine.MOST_VIEWERS", 1)
        async with watching(site):
            with pytest.raises(aiohttp.WSServerHandshakeError) as refusal:
                async with watching(site):
                    pass
            assert refusal.value.status == 503
    assert MOST_VIEWERS > 20
    assert len(viewers) <= 1
