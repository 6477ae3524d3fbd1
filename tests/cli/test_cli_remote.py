"""The options and exit codes that all commands for a server share."""

import asyncio
import re
import signal
import subprocess
import sys
from pathlib import Path

import aiohttp
import click
import pytest
from click.testing import CliRunner
from conformance.keyed import secret, write_keys
from conformance.streams import PATIENCE_S, pause
from process.server import running
from tls.authority import Authority

import zq
from zq.cli.group import main

from .shell import PEOPLE, Shell, ended

WORDS = {
    "push": ("mail", "1"),
    "wait": ("0" * 26,),
    "status": ("0" * 26,),
    "cancel": ("0" * 26,),
    "requeue": ("0" * 26,),
    "pause": ("mail",),
    "resume": ("mail",),
    "cron add": ("billing", "nightly", "0 3 * * *", "mail"),
    "cron pause": ("billing",),
    "cron resume": ("billing",),
    "cron remove": ("billing", "nightly"),
    "producers forget": ("device-17",),
    "devices forget": ("device-17",),
    "devices send": ("device-17", "commands", "1"),
    "devices lacking": ("update-1.9",),
    "forward status": ("up",),
    "forward add": ("up", "--queue", "out*", "--to", "http://127.0.0.1:9"),
    "forward drop": ("up",),
    "forward pause": ("up",),
    "forward resume": ("up",),
    "budgets show": ("crm",),
    "budgets set": ("crm", "2"),
    "budgets remove": ("crm",),
    "budgets bind": ("crm", "--all"),
    "budgets unbind": ("crm", "--all"),
    "budgets hold": ("crm", "20s"),
    "budgets reopen": ("crm",),
    "backlog": ("mail",),
    "fair list": ("mail",),
    "fair set": ("mail", "acme", "--weight", "2"),
    "fair unset": ("mail", "acme"),
    "change": ("0" * 26, "--priority", "1"),
    "delete": ("0" * 26, "--yes"),
    "mark": ("release",),
    "settings": ("mail",),
    "schema": ("mail",),
    "workers drop": ("w",),
    "sweeps stop": ("1",),
    "sweeps undo": ("1",),
}
GROUPS = [command for command in PEOPLE if isinstance(command, click.Group)]
COMMANDS = [
    *(str(command.name) for command in PEOPLE if command not in GROUPS),
    *(f"{group.name} {name}" for group in GROUPS for name in group.commands),
]
"""What people type after `zq`, before the words that it is about."""


def words_for(command: str) -> list[str]:
    return [*command.split(), *WORDS.get(command, ())]


@pytest.mark.parametrize("command", COMMANDS)
def test_no_server_gives_3_in_one_line(command: str) -> None:
    words = [*words_for(command), "--url", "http://127.0.0.1:1"]
    result = CliRunner().invoke(main, words)
    assert (result.exit_code, result.stdout, result.stderr.count("\n")) == (3, "", 1)
    assert "no zq server answers at http://127.0.0.1:1" in result.stderr


@pytest.mark.parametrize("command", COMMANDS)
def test_help_has_examples_and_tells_the_exit_codes(command: str) -> None:
    text = CliRunner().invoke(main, [*command.split(), "--help"]).output
    assert f"\n    zq {command}" in text
    assert all(f"ZQ_{name}" in text for name in ("URL", "TOKEN", "CA", "CLIENT_CERT", "CLIENT_KEY"))
    told = " ".join(text.split()).partition("Exit codes: ")[2]
    assert told.startswith("0")
    assert told.endswith("3 if no server answers.")


async def test_a_key_opens_what_it_is_for(tmp_path: Path) -> None:
    file, token = write_keys(tmp_path / "keys"), secret("only-read")
    async with running(tmp_path / "data", "--keys", str(file)) as server:
        url = f"http://127.0.0.1:{server.port}"

        async def run(*words: str, **env: str) -> tuple[int, str]:
            result = await asyncio.to_thread(CliRunner().invoke, main, words, env=env)
            assert result.stderr.startswith(f"server: {url}\n")
            return result.exit_code, result.stderr.partition("\n")[2]

        code, said = await run("jobs", "--url", url)
        assert code == 1
        assert "ZQ_TOKEN" in said
        assert await run("jobs", "--url", url, "--token", token) == (0, "")
        assert await run("jobs", ZQ_URL=url, ZQ_TOKEN=token) == (0, "")
        code, said = await run("push", "mail", "1", ZQ_URL=url, ZQ_TOKEN=token)
        assert code == 1
        assert said.count("\n") == 1


def test_an_embedded_queue_needs_no_server(tmp_path: Path) -> None:
    url = f"sqlite://{tmp_path}/data"
    with zq.App(url) as app:
        app.queue("mail").sync.enqueue("1", None)
    pushed = CliRunner().invoke(main, ["push", "mail", "1", "--url", url])
    assert pushed.exit_code == 0
    listed = CliRunner().invoke(main, ["jobs", "--url", url, "--json"])
    assert listed.stdout.count("\n") == 2
    assert pushed.stdout.strip() in listed.stdout


@pytest.mark.parametrize("command", COMMANDS)
def test_a_directory_that_is_none_is_not_made(command: str, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for directory in ("typo", "empty", "typo/deeper"):
        url = f"sqlite://{tmp_path}/{directory}"
        result = CliRunner().invoke(main, [*words_for(command), "--url", url])
        assert (result.exit_code, result.stdout, result.stderr.count("\n")) == (2, "", 1)
        assert f"{tmp_path}/{directory} holds no database" in result.stderr
    assert [path.name for path in tmp_path.rglob("*")] == ["empty"]


@pytest.mark.parametrize(
    "words",
    [
        ["jobs", "--url", "localhost:7890"],
        ["jobs", "--url", "http://h:port"],
        ["jobs", "--limit", "0"],
        ["jobs", "--status", "alive"],
        ["jobs", "--no-such-flag"],
        ["jobs", "word"],
        *(["jobs", "--queue", ""], ["jobs", "--type", ","], ["dead", "--queue", " "]),
        *(["status", ""], ["wait", " "], ["cancel", ""], ["requeue", ""], ["pause", ""]),
        *(["queues", ""], ["push", "", "1"], ["push", "a,b", "1"], ["requeue", "--queue", ""]),
        ["no-such-command"],
        ["serve", "word"],
        ["worker"],
        ["push"],
        ["keys", "add", "name"],
        ["tls", "init", "--days", "x"],
        ["history", "export", "--out", "x", "--url", "http://[::1"],
        ["pipeline", "run"],
        ["check", "--root-dir", "/no/such"],
    ],
    ids=" ".join,
)
def test_a_wrong_word_is_one_line_and_2(words: list[str]) -> None:
    result = CliRunner().invoke(main, words)
    assert (result.exit_code, result.stdout, result.stderr.count("\n")) == (2, "", 1)
    assert result.stderr.startswith("Error: ")
    assert "?." not in result.stderr
    assert "--help`" in result.stderr


@pytest.mark.parametrize("words", [["-h"], ["jobs", "-h"], ["serve", "-h"], ["keys", "add", "-h"]])
def test_help_is_to_be_had_in_short(words: list[str]) -> None:
    result = CliRunner().invoke(main, words)
    assert result.exit_code == 0
    assert "Examples:" in result.stdout


async def test_ctrl_c_ends_what_waits_with_130_in_one_line(shell: Shell) -> None:
    (job,) = await shell.push(1)
    for words in (["wait", job.id], ["push", "mail", "1", "--wait"]):
        process = await shell.start(*words)
        # Its connection stays open while it waits.
        async with asyncio.timeout(PATIENCE_S):
            while await waiting(shell) == 0:
                await pause()
        process.send_signal(signal.SIGINT)
        said = await ended(process)
        assert (said.code, said.output) == (130, "")
        assert said.errors.splitlines()[-1] == "Error: interrupted"
        assert await shell.backend.count() >= 1
        # The server lets a client that has finished sending read on for a while.
        async with asyncio.timeout(PATIENCE_S):
            while await waiting(shell):
                await pause()


def test_race_an_interruption_between_a_verb_and_its_first_step() -> None:
    """What was never begun is no fault, of which Python would tell below the one line."""
    program = """if True:
        import signal
        from zq.cli.group import main
        from zq.client import backend
        backend.run = lambda verb: signal.raise_signal(signal.SIGINT)
        main(["wait", "01JD0000000000000000000000"])
    """
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (130, "Error: interrupted\n")


async def waiting(shell: Shell) -> int:
    """How many requests wait for the end of a job."""
    async with aiohttp.ClientSession() as session, session.get(f"{shell.url}/metrics") as answer:
        found = re.search(r"^zq_connections (\d+)", await answer.text(), re.M)
    assert found
    return int(found[1]) - 2


async def test_https_needs_the_authority(tmp_path: Path) -> None:
    authority = Authority(tmp_path / "certificates")
    cert, key = authority.issue("server")
    flags = ("--tls-cert", str(cert), "--tls-key", str(key))
    async with running(tmp_path / "data", *flags) as server:
        words = ["jobs", "--url", f"https://localhost:{server.port}"]
        unknown = await asyncio.to_thread(CliRunner().invoke, main, words)
        assert unknown.exit_code == 3
        assert "--ca" in unknown.stderr
        words += ["--ca", str(authority.file)]
        known = await asyncio.to_thread(CliRunner().invoke, main, words)
        assert (known.exit_code, known.stderr.count("\n")) == (0, 1)


def test_a_file_that_is_no_authority_is_a_wrong_word(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("no certificate")
    words = ["jobs", "--url", "https://127.0.0.1:1", "--ca", str(tmp_path / "ca.pem")]
    result = CliRunner().invoke(main, words)
    assert result.exit_code == 2
    assert "ca.pem" in result.stderr
