"""A copy of zq's sources in which a change is rehearsed, with the count of the files it touches."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
PATIENCE_S = 300

OPENING = '''
import asyncio, runpy, tempfile
from pathlib import Path
from typing import Any

import aiohttp
from click.testing import CliRunner

import zq
from zq.cli.group import main as zq_command
from zq.testing import server

assert Path(zq.__file__).is_relative_to(Path.cwd()), zq.__file__


async def call(running: Any, method: str, path: str, body: Any = None) -> Any:
    """The answer of the server: a document, or text."""
    async with aiohttp.ClientSession() as session:
        async with session.request(method, running.url + path, json=body) as reply:
            assert reply.status < 300, (method, path, reply.status, await reply.text())
            is_json = reply.content_type == "application/json"
            return await reply.json() if is_json else await reply.text()


async def command(running: Any, *words: str) -> str:
    """What a command prints, which ends well."""
    env = {"ZQ_URL": running.url}
    done = await asyncio.to_thread(CliRunner().invoke, zq_command, words, env=env)
    assert done.exit_code == 0, (words, done.output)
    return done.stdout


async def main() -> None:
    async with server() as running, running.app() as app:
'''
"""What each trial begins with: a server of the copy, and an app that talks to it."""


class Tree:
    """A copy of the package `zq`. `touched` has its changed files, generated ones left out."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.touched: set[str] = set()
        # The compiled files come along: they are valid as long as the times of the sources are.
        # What Python compiles at this moment has another name until it is complete.
        drafts = shutil.ignore_patterns("*.pyc.*")
        shutil.copytree(ROOT / "zq", folder / "zq", symlinks=True, ignore=drafts)

    def add(self, path: str, after: str, text: str) -> None:
        """Put lines behind others, which are in the file once."""
        self.change(path, after, after + text)

    def change(self, path: str, old: str, new: str) -> None:
        """Put lines in the place of others, which are in the file once."""
        file = self.folder / path
        source = file.read_text(encoding="utf-8")
        assert source.count(old) == 1, f"{path} has {source.count(old)} times: {old}"
        file.write_text(source.replace(old, new), encoding="utf-8")
        self.touched.add(path)

    def write(self, path: str, text: str) -> None:
        """Write a new file."""
        file = self.folder / path
        file.parent.mkdir(exist_ok=True)
        assert not file.exists(), path
        file.write_text(text, encoding="utf-8")
        self.touched.add(path)

    def tries(self, lines: str, *modules: str) -> str:
        """Run lines of a trial: `running` is a server of this copy, and `app` talks to it.

        Returns what modules print that make generated texts. They run in the same process, since
        to import zq takes longer than what is tried.
        """
        body = "".join(f"        {line}\n" for line in lines.strip("\n").splitlines())
        prints = "".join(f"runpy.run_module({each!r}, run_name='__main__')\n" for each in modules)
        # Flags of the tests' own interpreter would have it look into the folder of the original.
        run = subprocess.run(
            [sys.executable, "-c", f"{OPENING}{body}\n\nasyncio.run(main())\n{prints}"],
            cwd=self.folder,
            env=os.environ | {"PYTHONPATH": str(self.folder)},
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
        )
        assert run.returncode == 0, run.stderr
        return run.stdout
