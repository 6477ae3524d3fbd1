"""What a rule says of how a lane goes: by which key and certificate, how fast, how packed."""

import asyncio
from pathlib import Path

import pytest
from conformance.client import JSON, Client
from conformance.site import Site
from tls.authority import Authority

from zq.features.forward.service import Lanes
from zq.model.keys import digest_of, make_key

from .edge import Edge, until


async def test_a_lane_shows_its_certificate_to_a_hub_that_asks_for_one(tmp_path: Path) -> None:
    authority = Authority(tmp_path / "certificates")
    cert, key = authority.issue("server")
    mine = authority.issue("client")
    tls = {"tls_cert": cert, "tls_key": key, "tls_client_ca": authority.file}
    hub, device = Site(tmp_path / "hub", tls), Site(tmp_path / "device", {"device": "d1"})
    await hub.start()
    rules = tmp_path / "rules.toml"
    lane = f'queues = ["out*"]\nurl = "https://localhost:{hub.port}"\nca = "{authority.file}"\n'
    shown = f'client_cert = "{mine[0]}"\nclient_key = "{mine[1]}"\n'
    rules.write_text(f"[lanes.up]\n{lane}")
    await device.start(forward_rules=rules)
    async with Client(device, JSON) as near:
        await near.post("/jobs", {"queue": "out", "type": "t", "payload": 1})
        await until(lambda: device.server.services[Lanes].progress("up").error)

        rules.write_text(f"[lanes.up]\n{lane}{shown}")
        await device.restart(forward_rules=rules)
        await until(lambda: device.server.services[Lanes].progress("up").arrived == 1)
    await device.stop()
    await hub.stop()


async def test_a_key_is_read_from_its_file_at_each_connection(tmp_path: Path) -> None:
    keys = [
        make_key(name, digest_of(name.encode()), "enqueue,read", []) for name in ("all", "mine")
    ]
    (tmp_path / "keys").write_text("".join(f"{key.line}\n" for key in keys))
    secret, rules = tmp_path / "secret", tmp_path / "rules.toml"
    secret.write_text("wrong\n")
    async with Edge(tmp_path, {"keys": tmp_path / "keys"}).running(key="all") as edge:
        rules.write_text(
            f'[lanes.up]\nqueues = ["out*"]\nurl = "{edge.url}"\nkey_file = "{secret}"\n'
        )
        await edge.device.restart(forward_rules=rules)
        await edge.push(1)
        await until(lambda: edge.progress.error_code == "unauthorized")

        secret.write_text("mine\n")
        await edge.hurry()

        assert await edge.eventually(1) == [1]


async def test_a_lane_with_a_rate_sends_no_faster(tmp_path: Path) -> None:
    async with Edge(tmp_path).running() as edge:
        await edge.push(*range(10))
        began = asyncio.get_running_loop().time()
        await edge.lay(batch=1, rate=20)
        assert await edge.eventually(10) == list(range(10))
        assert asyncio.get_running_loop().time() - began >= 9 / 20


@pytest.mark.parametrize(("compression", "is_small"), [("gzip", True), ("none", False)])
async def test_bodies_are_compressed_as_the_rule_says(
    tmp_path: Path, compression: str, is_small: bool
) -> None:
    async with Edge(tmp_path).running() as edge:
        await edge.push("x" * 100_000)
        await edge.lay(compression=compression)
        await edge.eventually(1)
        assert (edge.cable.up < 50_000) is is_small


async def test_copies_for_targets_are_forwarded(tmp_path: Path) -> None:
    async with Edge(tmp_path).running() as edge:
        for target in ("out%2Fa", "out%2Fb"):
            assert (await edge.near.call("PUT", f"/queues/all/targets/{target}", {})).status < 300
        await edge.push(1, queue="all")
        await edge.lay()
        assert await edge.eventually(2) == [1, 1]
