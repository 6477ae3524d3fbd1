"""The clients that reach a server in a process: addresses, key files, changes by signal."""

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner
from conformance.client import JSON, Client

from zq.cli.group import main

from .network import HERE, THERE, Network
from .server import ServerProcess, refused, running


@pytest.fixture
def network() -> Iterator[Network]:
    with Network() as network:
        yield network


def add_key(path: Path, name: str, scopes: str = "read") -> str:
    """The secret of a key that `zq keys` has made."""
    result = CliRunner().invoke(
        main, ["keys", "add", name, "--scopes", scopes, "--keys", str(path)]
    )
    assert result.exit_code == 0, result.output
    return result.output.splitlines()[0]


def errors(server: ServerProcess) -> list[str]:
    return [line["fields"]["message"] for line in server.log if line["level"] == "ERROR"]


@pytest.mark.parametrize("host", ["0.0.0.0", "::", HERE])
async def test_an_address_that_others_can_reach_is_refused_without_keys(
    tmp_path: Path, host: str
) -> None:
    code, server = await refused(tmp_path, "--host", host)

    assert code == 78
    (message,) = errors(server)
    for words in (f"--host {host}", "--keys", "--insecure"):
        assert words in message
    assert not (tmp_path / "zq.db").exists()


async def test_an_address_that_others_can_reach_is_fine_with_keys(tmp_path: Path) -> None:
    secret = add_key(tmp_path / "keys", "reader")
    flags = ("--host", "0.0.0.0", "--keys", str(tmp_path / "keys"))
    async with running(tmp_path / "data", *flags) as server, server.client() as stranger:
        assert (await stranger.get("/queues")).status == 401
        async with Client(stranger.site, JSON, secret) as reader:
            assert (await reader.get("/queues")).status == 200


@pytest.mark.parametrize(
    ("flags", "env"), [(["--insecure"], {}), ([], {"ZQ_INSECURE": "yes"})], ids=str
)
async def test_insecure_permits_it_and_every_address_is_our_name(
    network: Network, tmp_path: Path, flags: list[str], env: dict[str, str]
) -> None:
    async with (
        running(tmp_path, "--host", "0.0.0.0", *flags, env=env) as server,
        await network.connect(server.port) as connection,
    ):
        hosts = {HERE: 200, f"{HERE}:1": 200, THERE: 200, "0.0.0.0": 403, "example.com": 403}
        for host, status in hosts.items():
            await connection.send(f"GET /queues HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
            assert (await connection.reply()).status == status, host
        # From elsewhere nobody wipes a server that has no keys.
        await connection.send(f"POST /reset HTTP/1.1\r\nHost: {HERE}\r\n\r\n".encode())
        assert (await connection.reply()).status == 403


async def test_with_keys_their_holder_resets_from_elsewhere(
    network: Network, tmp_path: Path
) -> None:
    secret = add_key(tmp_path / "keys", "boss", "manage")
    flags = ("--host", "0.0.0.0", "--keys", str(tmp_path / "keys"))
    async with (
        running(tmp_path / "data", *flags) as server,
        await network.connect(server.port) as connection,
    ):
        head = f"POST /reset HTTP/1.1\r\nHost: {HERE}\r\nAuthorization: Bearer {secret}\r\n\r\n"
        await connection.send(head.encode())
        assert (await connection.reply()).status == 204


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (None, "No such file or directory: `zq keys add` makes it"),
        ("# mine\nshop sha256:12 read\n", "line 2: the second field"),
        (b"\xff\n", "UTF-8"),
    ],
)
async def test_a_key_file_that_cannot_be_used_ends_the_start(
    tmp_path: Path, text: str | bytes | None, says: str
) -> None:
    path = tmp_path / "keys"
    if text is not None:
        path.write_bytes(text if isinstance(text, bytes) else text.encode())

    code, server = await refused(tmp_path / "data", "--keys", str(path))

    assert code == 78
    (message,) = errors(server)
    assert message.startswith(str(path))
    assert says in message


async def test_keys_are_added_and_revoked_by_a_signal_to_a_running_server(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    first = add_key(path, "first")
    async with running(tmp_path / "data", "--keys", str(path)) as server:
        second = add_key(path, "second")
        revoked = CliRunner().invoke(main, ["keys", "revoke", "first", "--keys", str(path)])
        assert revoked.exit_code == 0
        server.signal(signal.SIGHUP)
        await server.logged("keys reloaded")

        site = server.client().site
        async with Client(site, JSON, first) as old, Client(site, JSON, second) as new:
            assert (await old.get("/queues")).status == 401
            assert (await new.get("/queues")).status == 200


async def test_a_hangup_means_nothing_to_a_server_without_keys(tmp_path: Path) -> None:
    async with running(tmp_path) as server, server.client() as client:
        server.signal(signal.SIGHUP)
        assert (await client.get("/queues")).status == 200
