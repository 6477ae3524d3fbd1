"""The command of the unit for workers, run as systemd runs it."""

import asyncio
import re
import shlex
import signal
import socket
import sys
from pathlib import Path
from textwrap import dedent

from conformance.streams import PATIENCE_S
from process.server import clean_environment

from zq.client.app import App

from .workers import SHOP, app_url, shop

UNIT = Path(__file__).parent.parent.parent / "systemd" / "zq-worker@.service"


async def test_the_command_of_the_unit_works_and_says_when_it_is_ready(
    app: App, tmp_path: Path
) -> None:
    (tmp_path / "shop.py").write_text(dedent(SHOP))
    (tmp_path / ".venv").symlink_to(sys.prefix)
    (line,) = re.findall("^ExecStart=(.*)$", UNIT.read_text(encoding="utf-8"), re.M)
    command = line.replace("/srv/%i", str(tmp_path)).replace("${APP}", "shop:app")
    quick, _, _ = shop(app)
    job = await quick.enqueue(1)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        manager.setblocking(False)
        process = await asyncio.create_subprocess_exec(
            *shlex.split(command),
            cwd=tmp_path,
            env=clean_environment()
            | {"ZQ_URL": app_url(app), "NOTIFY_SOCKET": str(tmp_path / "notify")},
        )
        try:
            async with asyncio.timeout(PATIENCE_S):
                told = await asyncio.get_running_loop().sock_recv(manager, 4096)
            assert told == b"READY=1"
            assert await job.result() == 2
            process.send_signal(signal.SIGTERM)
            async with asyncio.timeout(PATIENCE_S):
                assert await process.wait() == 0
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
