"""Names, payloads and errors that would control a terminal are shown as escapes."""

import ast
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import zq.cli
from zq.cli.group import main
from zq.client.values import LeasedFailure, Submission, TakeRequest
from zq.model.job import Retention

from .shell import Ended, Shell

NASTY = "\x1bc\x9d0;owned\x07\x9b2J\x7f\u202egnp\r\u2028x"
"""A reset, a title, the clearing of the screen, DEL, text from right to left, line breaks."""

SHOWN = r"\x1bc\x9d0;owned\x07\x9b2J\x7f\u202egnp"


HERE = Path(zq.cli.__file__).parent
FILES = sorted(file for file in HERE.rglob("*.py") if file.name != "terminal.py")


def harmless(text: str) -> bool:
    return all(character.isprintable() or character == "\n" for character in text)


async def nasty_job(shell: Shell) -> str:
    """A job that has failed for good, nasty wherever it can be."""
    job = Submission(
        *(f"mail{NASTY}", f"type{NASTY}", {NASTY: NASTY}),
        unique_key=f"key{NASTY}",
        meta={NASTY: NASTY},
        retention=Retention(None, 60_000),
    )
    (stored,) = await shell.backend.enqueue([job])
    stream = await shell.backend.take(TakeRequest((job.queue,), 1))
    (delivery,) = await stream.deliveries()
    failure = LeasedFailure(NASTY, f"Error{NASTY}", NASTY, kill=True, lease=delivery.lease)
    await shell.backend.fail(stored.id, failure)
    await stream.close()
    return stored.id


async def test_no_command_lets_a_name_steer_the_terminal(shell: Shell) -> None:
    id = await nasty_job(shell)
    queue = f"mail{NASTY}"
    words: list[list[str]] = [
        *(["jobs"], ["dead"], ["queues"], ["queues", queue], ["status", id], ["wait", id]),
        *(["pause", queue], ["resume", queue], ["requeue", "--queue", queue], ["cancel", id]),
        *(["push", queue, json.dumps(NASTY)], ["requeue", NASTY], ["status", NASTY]),
        *(["push", "mail", "--type", f"a,{NASTY}", "1"], ["jobs", "--filter", f".{NASTY}"]),
        *([NASTY], ["jobs", f"--{NASTY}"], ["jobs", "--status", NASTY], ["jobs", "--url", NASTY]),
        *(["push", "--file", NASTY], ["push", "mail", f"@{NASTY}"], ["check", "--root-dir", NASTY]),
        *(["budgets", "show", NASTY], ["budgets", "set", NASTY, "2"], ["budgets", "list"]),
        *(["cron", "list"], ["cron", "next", NASTY], ["cron", "remove", NASTY, NASTY]),
        *(["backup", f"{NASTY}/{NASTY}"], ["restore", NASTY], ["top", "--once"]),
        *(["worker", NASTY], ["tls", "client-cert", "--name", NASTY], ["keys", "revoke", NASTY]),
    ]
    told = 0
    for line in words:
        plain = await shell.zq(*line)
        assert harmless(plain.output), line
        assert harmless(plain.errors), line
        told += SHOWN in plain.output + plain.errors
        document = await shell.zq(*line, "--json")
        assert harmless(document.output + document.errors), line
    assert told >= 12


async def test_a_terminal_is_not_steered_either(shell: Shell) -> None:
    id = await nasty_job(shell)
    for words in (["jobs"], ["dead"], ["queues"], ["status", id]):
        text = await shell.on_terminal(*words)
        assert "owned\x07" not in text
        assert not {"\x9b", "\x7f", "\u202e", "\u2028"} & set(text)
        assert r"\x1bc" in text


async def test_json_stays_the_same_json(shell: Shell) -> None:
    id = await nasty_job(shell)
    ended: Ended = await shell.zq("status", id, "--json")
    (document,) = ended.documents
    assert document["queue"] == f"mail{NASTY}"
    assert document["payload"] == {NASTY: NASTY}
    odd: Any = {"text": "ž \U0001f600 \U000e0001 \x85"}
    await shell.push(odd)
    (found,) = (await shell.zq("jobs", "--queue", "mail", "--json")).documents
    assert found["payload"] == odd


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(HERE)))
def test_commands_write_by_one_way_only(file: Path) -> None:
    for node in ast.walk(ast.parse(file.read_text())):
        called = ast.unparse(node.func) if isinstance(node, ast.Call) else ""
        assert called not in ("click.echo", "click.secho", "print", "sys.stdout.write"), file


def test_an_error_of_a_file_s_name_is_one_line(tmp_path: Path) -> None:
    result = CliRunner().invoke(main, ["keys", "list", "--keys", str(tmp_path / NASTY)])
    assert result.exit_code == 1
    assert harmless(result.stderr)
    assert result.stderr.count("\n") == 1
