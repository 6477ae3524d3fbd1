"""The commands of docs/command-line.md, run as they are printed."""

import shlex

from documents import ID, code

from zq.client.values import JobQuery
from zq.model.job import Retention

from .shell import PEOPLE, Shell, ended


async def test_the_commands_of_the_documents(shell: Shell) -> None:
    (shell.directory / "letter.json").write_text('{"to": "ann@example.org"}')
    (shell.directory / "jobs.ndjson").write_text(code("jobs.ndjson"))
    (shell.directory / "letter.avsc").write_text('{"type": "map", "values": "string"}')
    done = set()
    for line in code("command line").splitlines():
        prompt, name, command, *words = shlex.split(line)
        assert (prompt, name) == ("$", "zq")
        if ID in words:
            words[words.index(ID)] = await _a_job_for(shell, command)
        process = await shell.start(command, *words)
        if "--wait" in words:
            await shell.finish(words[0], 3)
        said = await ended(process)
        assert said.code == 0, (line, said)
        done.add(command)
    assert done == {command.name for command in PEOPLE}
    assert await shell.backend.count(JobQuery(queues=("mail",))) == 5


async def test_the_commands_about_budgets_of_the_documents(shell: Shell) -> None:
    said = []
    for line in code("budgets on the command line").splitlines():
        prompt, name, *words = shlex.split(line)
        assert (prompt, name) == ("$", "zq")
        done = await shell.zq(*words)
        assert done.code == 0, (line, done)
        said.append(done.output)
    assert said[3] == "crm-rate allows 50 per 1m, burst 10\n"


async def test_the_commands_about_sweeps_of_the_documents(shell: Shell) -> None:
    await shell.push(1, 2)
    said = []
    for line in code("sweeps on the command line").splitlines():
        prompt, name, *words = shlex.split(line)
        assert (prompt, name) == ("$", "zq")
        done = await shell.zq(*words)
        assert done.code == 0, (line, done)
        said.append(done.output)
    cancelled, listed, undone, _, _, actions = said
    assert (cancelled, undone) == ("2 jobs cancelled\n", "2 jobs brought back\n")
    assert "wrong list" in listed
    assert "/sweeps/1/undo" in actions


async def _a_job_for(shell: Shell, command: str) -> str:
    """The id of a job for which a command is meant."""
    (job,) = await shell.push(1, queue=f"for-{command}", retention=Retention(60_000, 60_000))
    if command in ("wait", "requeue"):
        await shell.finish(f"for-{command}", 3, error="boom" if command == "requeue" else "")
    return job.id
