"""Lanes over HTTP and on the command line, and lanes that are declared at the start."""

import asyncio
import signal
from pathlib import Path

import pytest
from click.testing import CliRunner
from process.server import refused, running

from zq.cli.group import main
from zq.config import Settings
from zq.features.forward.model import LaneRule
from zq.features.forward.service import Hubs
from zq.setting import ConfigError

from .edge import Edge, until

RULES = """
[lanes.up]
queues = ["out*", "alarms"]
url = "{url}"
batch = 20
"""


async def run(edge: Edge, *words: str) -> str:
    """What `zq forward` prints."""
    words = ("forward", *words, "--url", edge.device.url)
    result = await asyncio.to_thread(CliRunner().invoke, main, words)
    assert result.exit_code == 0, result.output
    return result.stdout


async def test_a_lane_is_made_shown_stopped_and_dropped(tmp_path: Path) -> None:
    async with Edge(tmp_path).running() as edge:
        made = await edge.near.call(
            "PUT", "/forward/up", {"queues": ["out*"], "url": edge.url, "token": "secret"}
        )
        assert made.status == 200 and b"secret" not in made.body
        await edge.push(1, 2)
        await edge.eventually(2)
        assert (await edge.near.post("/forward/up/pause", {})).doc["state"] in ("idle", "paused")
        await until(lambda: edge.progress.state == "paused")
        await edge.push(3)
        edge.device.clock.advance(5000)
        (shown,) = (await edge.near.get("/forward")).doc["lanes"]
        assert (shown["waiting"], shown["lag_ms"], shown["arrived"]) == (1, 5000, 2)
        assert (await edge.near.post("/forward/up/resume", {})).status == 200
        await edge.eventually(3)
        assert (await edge.near.delete("/forward/up")).status == 204
        assert (await edge.near.get("/forward/up")).headers["zq-error"] == "lane_not_found"


async def test_a_lane_is_seen_wherever_an_operator_looks(tmp_path: Path) -> None:
    async with Edge(tmp_path).running() as edge:
        assert "lanes" not in (await edge.near.get("/health")).doc
        await edge.lay()
        await edge.push("sent")
        await edge.eventually(1)
        succeeded = edge.device.now
        edge.cable.cut()
        edge.device.clock.advance(60_000)
        await edge.push("x" * 98, "y" * 8)
        await until(lambda: edge.progress.state == "waiting")
        stored = edge.device.now
        edge.device.clock.advance(7000)

        (lane,) = (await edge.near.get("/health")).doc["lanes"]
        metrics = (await edge.near.get("/metrics")).body.decode()
        said = await run(edge, "status")

        assert (lane["name"], lane["state"]) == ("up", "waiting")
        assert (lane["waiting"], lane["bytes"]) == (2, 110)
        assert (lane["lag_ms"], lane["oldest_at"]) == (7000, stored)
        assert lane["succeeded_at"] == succeeded and stored <= lane["failed_at"] <= stored + 7000
        assert lane["error"] == lane["failure"] and "127.0.0.1" in lane["error"]
        for line in ('jobs{lane="up"} 2', 'bytes{lane="up"} 110'):
            assert f"zq_lane_waiting_{line}" in metrics
        assert 'zq_lane_lag_seconds{lane="up"} 7' in metrics
        assert 'zq_lane_failing{lane="up"} 1' in metrics
        assert "2 jobs with 110 bytes wait, the oldest for" in said
        assert "no answer from" in said and "1 have arrived" in said

        edge.cable.target = edge.hub.port
        await edge.hurry()
        await edge.eventually(3)
        await until(lambda: edge.progress.state == "idle")
        (lane,) = (await edge.near.get("/health")).doc["lanes"]
        assert lane["waiting"] == lane["bytes"] == 0 and "error" not in lane and lane["failure"]


@pytest.mark.parametrize(
    "rule",
    [
        {"queues": [], "url": "http://h"},
        {"queues": ["a*b"], "url": "http://h"},
        {"queues": ["a"], "url": "ftp://h"},
        {"queues": ["a"], "url": "http://h", "batch": 0},
        {"queues": ["a"], "url": "http://h", "rate": 0},
        {"queues": ["a"], "url": "http://h", "max_bytes": 0},
        {"queues": ["a"], "url": "http://h", "key_file": "/etc/passwd"},
    ],
)
async def test_a_rule_that_cannot_be_is_refused(tmp_path: Path, rule: dict[str, object]) -> None:
    async with Edge(tmp_path).running() as edge:
        assert (await edge.near.call("PUT", "/forward/up", rule)).status == 400


async def test_the_command_line_makes_and_shows_lanes(tmp_path: Path) -> None:
    async with Edge(tmp_path).running() as edge:
        said = await run(edge, "add", "up", "--queue", "out*", "--to", edge.url, "--batch", "7")
        assert said.startswith("up is ")
        await edge.push(1)
        await edge.eventually(1)
        assert "out*" in await run(edge, "list")
        await until(lambda: edge.link.state == "listening")
        assert "listening" in await run(edge, "hubs")
        assert '"fetched":0' in (await run(edge, "hubs", "--json")).replace(" ", "")
        assert "0 jobs with 0 bytes wait" in await run(edge, "status")
        await run(edge, "pause", "up")
        await until(lambda: edge.progress.state == "paused")
        assert '"state":"paused"' in (await run(edge, "status", "up", "--json")).replace(" ", "")
        await run(edge, "resume", "up")
        assert "is dropped" in await run(edge, "drop", "up")


async def test_lanes_are_declared_at_the_start(tmp_path: Path) -> None:
    async with Edge(tmp_path).running() as edge:
        rules = tmp_path / "rules.toml"
        rules.write_text(RULES.format(url=edge.url))
        await edge.device.restart(forward_rules=rules)
        await edge.push(1)
        await edge.push(2, queue="alarms")
        assert sorted(await edge.eventually(2)) == [1, 2]

        await edge.device.restart(forward=f"out={edge.url}")
        assert [lane.name for lane in await edge.lanes.all()] == ["out"]


async def test_a_declared_lane_may_have_the_queues_of_another_one_from_a_start_on(
    tmp_path: Path,
) -> None:
    async with Edge(tmp_path).running() as edge:

        async def lanes(**queues: str) -> dict[str, tuple[str, ...]]:
            tables = [
                f'[lanes.{name}]\nqueues = ["{queue}"]\nurl = "{edge.url}"'
                for name, queue in queues.items()
            ]
            rules = tmp_path / "rules.toml"
            rules.write_text("\n".join(tables))
            await edge.device.restart(forward_rules=rules)
            return {lane.name: lane.rule.queues for lane in await edge.lanes.all()}

        assert await lanes(main="*") == {"main": ("*",)}
        found = await lanes(alarms="alarm*", main="sensor*")
        assert found == {"alarms": ("alarm*",), "main": ("sensor*",)}
        found = await lanes(alarms="sensor*", main="alarm*")
        assert found == {"alarms": ("sensor*",), "main": ("alarm*",)}
        assert await lanes(rest="*") == {"rest": ("*",)}


async def test_a_start_says_which_lane_has_the_queues_of_a_declared_one(tmp_path: Path) -> None:
    async with running(tmp_path / "data") as server, server.client() as client:
        rule = {"queues": ["sensor*"], "url": "http://127.0.0.1:1"}
        assert (await client.call("PUT", "/forward/up", rule)).status == 200
        server.signal(signal.SIGTERM)
        assert await server.exited() == 0
    code, server = await refused(tmp_path / "data", "--forward", "sensor*=http://127.0.0.1:1")
    assert code == 78
    (said,) = [text for text in server.messages if "lane" in text]
    assert "--forward: lane 'sensor' would share queues (sensor*) with lane 'up'" in said
    assert "can be dropped while" in said


@pytest.mark.parametrize(
    "given", [{"forward": "out"}, {"forward": "a=ftp://h"}, {"forward": "a=http://h,a=http://h"}]
)
def test_a_start_with_a_wrong_rule_is_refused(given: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match="--forward: "):
        Settings.of(**given)


UNUSABLE = (
    "http://[::1:7890",
    "http://user:topsecret@127.0.0.1:1",
    "http://hub:seven",
    "http://:7890",
    "http://hub/#1",
    "http://a hub",
    "hub:7890",
)


@pytest.mark.parametrize("url", UNUSABLE)
async def test_a_rule_whose_address_is_none_is_refused(tmp_path: Path, url: str) -> None:
    async with Edge(tmp_path).running() as edge:
        refused = await edge.near.call("PUT", "/forward/up", {"queues": ["out"], "url": url})
        assert refused.status == 400 and "url: " in refused.error
        assert "topsecret" not in refused.error
        assert (await edge.near.get("/forward")).doc["lanes"] == []
    with pytest.raises(ConfigError, match="lane out: url: ") as raised:
        Settings.of(root_dir=tmp_path, forward=f"out={url}")
    assert "topsecret" not in str(raised.value)


async def test_a_stored_rule_whose_address_is_none_makes_its_own_lane_wait(tmp_path: Path) -> None:
    """An earlier version has stored it. The server starts, and the lane can be dropped."""
    async with Edge(tmp_path).running() as edge:
        await edge.lay()
        rule = LaneRule(("bad",), "http://127.0.0.1:7890")
        await edge.lanes.put("bad", rule)
        edge.device.run_sql(
            "UPDATE lanes SET rule = replace(rule, '127.0.0.1:7890', '[::1:7890')"
            " WHERE name = 'bad'"
        )
        await edge.device.restart()
        await edge.push(1)
        assert await edge.eventually(1) == [1]

        progress = edge.lanes.progress("bad")
        await until(lambda: progress.state == "waiting")
        assert progress.error is not None and "Invalid IPv6 URL" in progress.error
        assert (await edge.near.delete("/forward/bad")).status == 204
        await until(lambda: len(edge.device.server.services[Hubs].all()) == 1)
