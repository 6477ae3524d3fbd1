"""The commands of docs/access.md and docs/operating.md, run in a shell as printed."""

import os
import subprocess
import sys
from pathlib import Path

import httpx
from documents import code, commands, started_by

from .server import clean_environment, running


def sh(directory: Path, command: str) -> str:
    """What a command prints, which has to end well."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        started_by(command),
        cwd=directory,
        env=clean_environment() | {"PATH": path},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


async def test_a_key_is_added_listed_used_and_revoked(tmp_path: Path) -> None:
    keys = tmp_path / "keys"
    add, show, revoke, serve = code("keys").replace("/etc/zq/keys", str(keys)).splitlines()

    secret = sh(tmp_path, add).split()[0]
    assert "shop-" in sh(tmp_path, show)
    async with running(tmp_path / "data", *serve.split()[2:]) as server:
        url, signed = f"http://127.0.0.1:{server.port}/jobs", {"Authorization": f"Bearer {secret}"}
        async with httpx.AsyncClient(trust_env=False) as client:
            assert (await client.get(url)).status_code == 401
            assert (await client.get(url, headers=signed)).status_code == 200
    sh(tmp_path, revoke)
    assert "shop-" not in sh(tmp_path, show)


async def test_certificates_are_made_and_served(tmp_path: Path) -> None:
    make, serve = commands("tls")

    sh(tmp_path, make)
    names = {file.name for file in (tmp_path / "tls").iterdir()}
    assert {"ca-cert.pem", "ca-key.pem", "client-worker-1-cert.pem"} <= names
    flags = serve.replace("tls/", f"{tmp_path}/tls/").split()[2:]
    async with running(tmp_path / "data", *flags) as server:
        assert (await server.logged("listening"))["fields"]["scheme"] == "https"


async def test_a_copy_of_a_stopped_servers_directory_goes_on(tmp_path: Path) -> None:
    async with running(tmp_path / "zq-root") as server, server.client() as client:
        job = await client.enqueue()

    for command in code("copy").splitlines():
        sh(tmp_path, command)
    async with running(tmp_path / "zq-copy") as server, server.client() as client:
        assert (await client.job(job["id"]))["status"] == "ready"
