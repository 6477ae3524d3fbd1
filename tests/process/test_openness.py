"""A start says what it opens, and to whom."""

import asyncio
from pathlib import Path

from click.testing import CliRunner

from zq.cli.group import main
from zq.serving import OPEN

from .server import WITH_ADMIN, ServerProcess


async def test_a_start_without_keys_says_what_is_open_and_how_to_close_it(tmp_path: Path) -> None:
    server = await ServerProcess.spawn(None, *WITH_ADMIN, "--root-dir", str(tmp_path / "root"))
    try:
        await server.logged(OPEN)
        line = (await server.logged("serving"))["fields"]
        assert line["data"] == str(tmp_path / "root")
        assert line["server"] == f"http://127.0.0.1:{server.port}"
        assert line["page"] == f"{await server.admin_url()}/ui/"
        words = line["try"].split()
        assert words[0] == "zq"
        done = await asyncio.to_thread(CliRunner().invoke, main, words[1:])
        assert done.exit_code == 0
        assert done.stderr == f"server: http://127.0.0.1:{server.port}\n"
    finally:
        await server.kill()
