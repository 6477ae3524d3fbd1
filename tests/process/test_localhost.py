"""`localhost` is the server's default host: both loopback addresses, whichever a program tries."""

import asyncio
import socket
from pathlib import Path

import aiohttp

from .server import refused, running

HOSTS = ("127.0.0.1", "[::1]")


async def answers(host: str, port: int) -> bool:
    """Whether a zq answers at an address."""
    try:
        async with aiohttp.ClientSession() as http, http.get(f"http://{host}:{port}/health"):
            return True
    except aiohttp.ClientConnectorError:
        return False


async def node(program: str) -> str:
    """What a program for Node prints."""
    process = await asyncio.create_subprocess_exec(
        *("node", "--input-type=module", "--eval", program), stdout=asyncio.subprocess.PIPE
    )
    printed, _ = await process.communicate()
    return printed.decode().strip()


async def test_the_default_answers_on_both_loopback_addresses(tmp_path: Path) -> None:
    async with running(tmp_path) as server:
        assert [await answers(host, server.port) for host in HOSTS] == [True, True]
        # Node takes the address that the system names first, and `localhost` may be either.
        program = f"""
            for (const host of ["localhost", "127.0.0.1", "[::1]"])
                console.log((await fetch(`http://${{host}}:{server.port}/health`)).status)
        """
        assert (await node(program)).split() == ["200"] * 3


async def test_an_address_that_was_chosen_is_the_only_one(tmp_path: Path) -> None:
    async with running(tmp_path, "--host", "127.0.0.1") as server:
        assert [await answers(host, server.port) for host in HOSTS] == [True, False]


async def test_another_program_on_one_of_the_addresses_is_told(tmp_path: Path) -> None:
    # Clients that take this address first would talk to the other program.
    told = "127.0.0.1"
    while "127.0.0.1" in told:
        # A third program may have the port of the other address.
        with socket.create_server(("::1", 0), family=socket.AF_INET6) as other:
            port = other.getsockname()[1]
            code, server = await refused(tmp_path, "--port", str(port))
        (line,) = [line for line in server.log if line["level"] == "ERROR"]
        told = str(line["fields"])
    assert code == 74
    assert f"[::1]:{port} is in use by another program" in told


async def test_a_machine_without_ipv6_serves_on_the_one_address(tmp_path: Path) -> None:
    away = "ip link set lo up && echo 1 >/proc/sys/net/ipv6/conf/all/disable_ipv6"
    before = ("unshare", "--net", "sh", "-c", f'{away} && exec "$@"', "sh")
    async with running(tmp_path, before=before) as server:
        assert server.port
