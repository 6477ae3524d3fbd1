"""The page about Celery: its program and its commands are run, with a worker of Celery's."""

import asyncio
import contextlib
import sys
from pathlib import Path

from conformance.streams import PATIENCE_S
from documents import code, commands
from process.server import clean_environment

from .celerys import PLACE, environment

PRODUCE = f'{sys.executable} -c "import letters_celery; letters_celery.produce()"'


class Programs:
    """What is started in a folder, with Celery and a Redis."""

    def __init__(self, folder: Path, redis: str) -> None:
        self._folder = folder
        self._env = clean_environment() | environment(redis)

    async def start(self, command: str) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_shell(
            f"exec {command}",
            cwd=self._folder,
            env=self._env,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )

    async def run(self, command: str) -> str:
        while True:
            process = await self.start(command)
            output, _ = await process.communicate()
            # It waits for a second, and a busy worker answers later.
            if b"No nodes replied" not in output:
                break
        assert process.returncode == 0, output.decode()
        return output.decode()


async def until(process: asyncio.subprocess.Process, *words: str) -> None:
    """Read the lines that a process prints, until each word was in a line of its own."""
    assert process.stdout is not None
    left, said = list(words), ""
    while left:
        line = (await process.stdout.readline()).decode()
        assert line, f"it has ended without {left}:\n{said}"
        said += line
        for found in {each for each in left if each in line}:
            left.remove(found)


async def test_the_program_works_and_its_commands_tell_what_is_left(
    redis: str, tmp_path: Path
) -> None:
    assert PLACE.exists(), "sh .ci/setup dev installs Celery"
    (tmp_path / "letters_celery.py").write_text(code("letters_celery.py"))
    programs = Programs(tmp_path, redis)
    (work,) = commands("celery worker")
    async with asyncio.timeout(5 * PATIENCE_S):
        await programs.run(PRODUCE)
        worker = await programs.start(work)
        try:
            await until(
                worker, "beat: Starting", "'sent Hello to ann@example.org'", *2 * ("received",)
            )
            told = await asyncio.gather(*map(programs.run, commands("what celery has left")))
        finally:
            with contextlib.suppress(ProcessLookupError):
                worker.terminate()
            await worker.communicate()
    reserved, scheduled, waiting = told
    assert ("empty" in reserved, "bob@example.org" in scheduled) == (True, True)
    assert waiting.strip() == "0"
