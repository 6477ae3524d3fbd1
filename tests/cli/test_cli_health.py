"""`zq health`: what is wrong with a server."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from process.server import WITH_ADMIN, ServerProcess

import zq

from .shell import Shell


@pytest.fixture(params=["page", "no page"])
async def shell(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[Shell]:
    """Commands, and a server with an admin listener."""
    # A flush of a busy disk may take so long that a finding says so.
    flags = ["--root-dir", str(tmp_path / "data"), "--default-commit-mode", "buffered"]
    flags += ["--ui", "off"] * (request.param != "page")
    server = await ServerProcess.spawn(None, *WITH_ADMIN, *flags)
    try:
        await server.listening()
        url = f"http://127.0.0.1:{server.port}"
        async with zq.App(url) as app:
            yield Shell(url, app.backend, tmp_path)
    finally:
        await server.kill()


async def test_health_tells_figures_and_ends_with_0_if_nothing_is_wrong(shell: Shell) -> None:
    await shell.push(1, 2)
    said = await shell.zq("health")
    assert (said.code, said.errors) == (0, "")
    assert said.server.startswith(shell.url)
    lines = dict(line.split(maxsplit=1) for line in said.output.splitlines())
    assert lines["waiting"].startswith("2, the oldest for ")
    assert lines["dead"] == "0"
    assert lines["nothing"] == "is wrong"


async def test_an_alarm_is_told_and_is_the_exit_code(shell: Shell) -> None:
    await shell.push(*range(5))
    for _ in range(5):
        await shell.finish("mail", error="boom")
    said = await shell.zq("health")
    assert said.code == 1
    assert "!! failing: mail 100 % of attempts" in said.output
    (told,) = (await shell.zq("health", "--json")).documents
    assert [each["code"] for each in told["findings"]][:1] == ["failing"]
    assert (told["figures"]["dead"], told["totals"]["dead"]) == (5, 5)
    assert "free_bytes" in told["status"]["disk"]
