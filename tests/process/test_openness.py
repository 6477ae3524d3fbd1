"""A start says what it opens, and to whom."""

from pathlib import Path

from zq.serving import OPEN

from .server import WITH_ADMIN, ServerProcess


async def test_a_start_without_keys_says_what_is_open_and_how_to_close_it(tmp_path: Path) -> None:
    server = await ServerProcess.spawn(None, *WITH_ADMIN, "--root-dir", str(tmp_path / "root"))
    try:
        line = await server.logged(OPEN)
        assert line["fields"]["page"].endswith("/ui/")
    finally:
        await server.kill()
