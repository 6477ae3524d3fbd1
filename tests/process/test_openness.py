"""A start says what it opens, and to whom."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from zq.cli.group import main
from zq.config import Settings
from zq.serving import CLOSING, openness

from .server import WITH_ADMIN, ServerProcess


async def test_a_start_without_keys_says_what_is_open_and_how_to_close_it(tmp_path: Path) -> None:
    server = await ServerProcess.spawn(None, *WITH_ADMIN, "--root-dir", str(tmp_path / "root"))
    try:
        await server.logged(
            "open without keys: every program of this machine may use the queue, the page and"
            f" backups; {CLOSING}"
        )
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


CA = {f"tls_{name}": Path(name) for name in ("cert", "key", "client_ca")}
ADMIN_CA = {f"admin_{name}": path for name, path in CA.items()}


@pytest.mark.parametrize(
    ("settings", "page", "admin", "said"),
    [
        ({}, False, False, "without keys: every program of this machine may use the queue;"),
        ({}, False, True, "without keys: every program of this machine may use the queue and back"),
        ({}, True, False, "without keys: every program of this machine may use the queue, the pag"),
        ({"insecure": True}, True, True, "without keys: everyone who reaches this server may use"),
        (CA, True, True, "without keys: every program of this machine may use"),
        (CA, False, False, "without keys: every client with a certificate may use"),
        (CA | ADMIN_CA, True, True, "without keys: every client with a certificate may use"),
        ({"keys": Path("keys")}, True, True, "to keys: the queue, the page and backups"),
    ],
)
def test_what_is_said_to_be_open_is_what_the_settings_open(
    settings: dict[str, Any], page: bool, admin: bool, said: str
) -> None:
    assert openness(Settings(**settings), page=page, admin=admin).startswith(f"open {said}")
