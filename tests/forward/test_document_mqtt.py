"""The program of the page about MQTT: each message becomes one job, whatever dies."""

import asyncio
import os
import shlex
import sys
from contextlib import AsyncExitStack
from pathlib import Path

from conformance.client import JSON, Client
from conformance.site import Site
from documents import code
from process.cable import Cable

from bench.ports import free_port

from .edge import until
from .mqtts import PLACE, PUBLISHES, broker, install

MOST_LINES = 40


class Bridge:
    """The program of the page between a broker and a server, and a sensor that publishes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = free_port()
        self.cable = Cable()
        self.hub = Site(folder / "hub", {})
        self.published = 0

    async def start(self) -> asyncio.subprocess.Process:
        """Start the program as the page does."""
        words = [sys.executable, *shlex.split(code("mqtt_in"))[1:]]
        return await self._run(*words)

    async def publish(self, count: int) -> None:
        """Have the broker acknowledge more messages."""
        first, self.published = self.published, self.published + count
        numbers = (str(n) for n in (self.port, first, self.published))
        process = await self._run(sys.executable, "-c", PUBLISHES, *numbers)
        assert await process.wait() == 0

    async def _run(self, *words: str) -> asyncio.subprocess.Process:
        variables = {
            "PYTHONPATH": str(PLACE),
            "ZQ_URL": f"http://127.0.0.1:{self.cable.port}",
            "MQTT_PORT": str(self.port),
        }
        return await asyncio.create_subprocess_exec(
            *words, cwd=self.folder, env=os.environ | variables
        )


def test_the_program_is_short() -> None:
    lines = [line for line in code("mqtt_in.py").splitlines() if line]
    assert len(lines) <= MOST_LINES


async def test_each_message_becomes_one_job_whatever_dies(tmp_path: Path) -> None:
    install()
    (tmp_path / "mqtt_in.py").write_text(code("mqtt_in.py"))
    bridge = Bridge(tmp_path)
    async with AsyncExitStack() as stack:
        await bridge.hub.start()
        stack.push_async_callback(bridge.hub.stop)
        await bridge.cable.lay()
        stack.push_async_callback(bridge.cable.close)
        bridge.cable.target = bridge.hub.port
        said = await stack.enter_async_context(broker(tmp_path, bridge.port))
        program = await bridge.start()
        await said.readuntil(b"Sending SUBACK to zq")
        listening = asyncio.create_task(said.read())
        stack.callback(listening.cancel)
        async with Client(bridge.hub, JSON) as client:

            async def is_there() -> bool:
                return await client.count() >= bridge.published

            await bridge.publish(30)
            await until(is_there)
            # The answer is lost after the commit, and the program dies before it has acknowledged.
            bridge.cable.swallows = 1
            await bridge.publish(30)
            await until(lambda: bridge.cable.swallowed)
            program.kill()
            await program.wait()
            await bridge.publish(30)
            bridge.cable.cut()
            program = await bridge.start()
            await bridge.publish(30)
            bridge.cable.target = bridge.hub.port
            await until(is_there)
            jobs = await client.jobs(limit=1000)
        program.kill()
        await program.wait()

    texts = [job["payload"]["text"] for job in jobs]
    assert texts == [str(n) for n in range(bridge.published)]
