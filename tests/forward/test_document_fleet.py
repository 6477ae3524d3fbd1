"""The commands of the page about fleets that concern the device."""

import asyncio
import shlex
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

from click.testing import CliRunner
from documents import SERVER, code, commands
from process.server import running

from zq.cli.group import main

from .edge import Edge, until

DEVICE = SERVER.replace("7890", "7891")


async def test_a_device_that_was_started_as_shown_forwards(tmp_path: Path) -> None:
    async with Edge(tmp_path).running() as edge:
        words = shlex.split(code("fleet: forward").replace(SERVER, edge.url))
        flags = words[words.index("--device") :]
        async with running(tmp_path / "shown", *flags) as server, server.client() as client:
            await client.enqueue(queue="sensor-1", payload=7)
            await until(edge.arrived)

        assert await edge.arrived() == [7]


async def test_a_hub_and_a_device_are_begun_as_shown(tmp_path: Path) -> None:
    hub_flags, device_flags = map(flags_of, commands("fleet: first"))
    async with running(tmp_path / "hub", *hub_flags) as hub:
        hub_url = f"http://127.0.0.1:{hub.port}"
        forwarding = [word.replace(SERVER, hub_url) for word in device_flags]
        async with running(tmp_path / "device", *forwarding) as device:
            device_url = f"http://127.0.0.1:{device.port}"

            async def said(line: str) -> str:
                return await printed(line.replace(SERVER, hub_url).replace(DEVICE, device_url))

            push, status, jobs, devices = commands("fleet: then")
            await said(push)
            assert "sensor" in await said(status)
            await until(partial(says, said, jobs, "sensor-1"))
            await until(partial(says, said, devices, "device-17"))


def flags_of(line: str) -> list[str]:
    """The words of a start but its directory and its port."""
    words = shlex.split(line)
    for name in ("--root-dir", "--port"):
        at = words.index(name)
        del words[at : at + 2]
    return words[2:]


async def printed(line: str) -> str:
    """What a command prints, which has to end well."""
    done = await asyncio.to_thread(CliRunner().invoke, main, shlex.split(line)[1:])
    assert done.exit_code == 0, (line, done.output)
    return done.output


async def says(said: Callable[[str], Awaitable[str]], line: str, text: str) -> bool:
    return text in await said(line)


async def test_lanes_are_changed_as_shown(tmp_path: Path) -> None:
    async with Edge(tmp_path).running() as edge:
        for line in code("fleet: lanes").replace(SERVER, edge.url).splitlines():
            words = [*shlex.split(line)[1:], "--url", edge.device.url]
            done = await asyncio.to_thread(CliRunner().invoke, main, words)
            assert done.exit_code == 0, (line, done.output)
        await edge.push(1, queue="sensor-1")
        await edge.eventually(1)


async def test_commands_for_a_fleet_are_sent_and_missed_as_shown(tmp_path: Path) -> None:
    async with Edge(tmp_path, device="device-17").running() as edge:
        await edge.lay()
        await edge.known()
        shown = []
        for line in code("fleet: commands").splitlines():
            words = [*shlex.split(line)[1:], "--url", edge.hub.url]
            done = await asyncio.to_thread(CliRunner().invoke, main, words)
            assert done.exit_code == 0, (line, done.output)
            shown.append(done.output)
        assert "1 device will get it" in shown[0]
        await until(edge.left)
        (job,) = await edge.left()
        assert (job["queue"], job["type"], job["payload"]) == ("commands", "update", 1.9)
