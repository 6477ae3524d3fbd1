"""Common parts of all commands: durations with a unit, help with examples."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from documents import code

from zq.cli.group import MEANT, main

BARE = "write a number with its unit, such as 500ms, 3s, 10m, 1h or 7d"


def durations(group: click.Group, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The words that lead to each option that takes a duration."""
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from durations(command, (*path, name))
        for option in command.params:
            if "DURATION" in (option.type.name.upper(), option.metavar):
                yield *path, name, option.opts[0]


def commands(group: click.Group, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The words of each command and each group of commands."""
    yield path
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from commands(command, (*path, name))
        else:
            yield *path, name


@pytest.mark.parametrize("words", list(commands(main)), ids=lambda words: " ".join(("zq", *words)))
def test_every_command_has_help_with_examples(words: tuple[str, ...]) -> None:
    result = CliRunner().invoke(main, [*words, "--help"])
    assert result.exit_code == 0
    examples = result.stdout.partition("Examples:\n")[2]
    assert " ".join(("    zq", *words)) in examples
    assert max(map(len, result.stdout.splitlines())) <= 100


OPTIONS = sorted(durations(main))


def test_all_commands_that_know_durations_are_looked_at() -> None:
    commands = "serve worker push wait pipeline top budgets pause change forward"
    assert {words[0] for words in OPTIONS} == set(commands.split())


@pytest.mark.parametrize("words", OPTIONS, ids=" ".join)
def test_a_number_without_a_unit_is_refused(words: tuple[str, ...]) -> None:
    result = CliRunner().invoke(main, [*words, "30"])
    assert result.exit_code == (78 if words[0] == "serve" else 2)
    assert f'"30" is not a duration: {BARE}' in result.stderr.replace("\n", " ")


@pytest.mark.parametrize("text", ["", "..", "9..1", "-1", "1...2", "one"])
def test_what_is_no_range_is_refused(text: str) -> None:
    result = CliRunner().invoke(main, ["jobs", "--priority", text])
    assert result.exit_code == 2
    assert "write 5, 1..9, 1.. or ..9" in result.stderr or "9 is more than 1" in result.stderr


@pytest.mark.parametrize("name", ["LEASE", "SHUTDOWN_TIMEOUT", "CONNECT_TIMEOUT"])
def test_a_variable_of_the_worker_needs_a_unit_too(name: str) -> None:
    result = CliRunner().invoke(main, ["worker", "app"], env={f"ZQ_WORKER_{name}": "30"})
    assert result.exit_code == 2
    assert BARE in result.stderr


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("zq pu", ["push"]),
        ("zq budgets un", ["unbind"]),
        ("zq serve --admin-h", ["--admin-host"]),
        ("zq --root-d", ["--root-dir"]),
        # What follows these flags is a setting of the server, without a word.
        ("zq --port 80 --ho", ["--host"]),
    ],
)
def test_a_shell_completes_words(line: str, found: list[str]) -> None:
    asked = {
        "_ZQ_COMPLETE": "bash_complete",
        "COMP_WORDS": line,
        "COMP_CWORD": str(line.count(" ")),
    }
    result = CliRunner().invoke(main, [], prog_name="zq", env=asked)
    assert [answer.partition(",")[2] for answer in result.stdout.split()] == found


def test_bash_completes_after_the_line_that_the_documents_print() -> None:
    line = code("completion")
    ask = "COMP_WORDS=(zq pu) COMP_CWORD=1; _zq_completion zq; echo ${COMPREPLY[@]}"
    done = subprocess.run(
        ("bash", "-c", f"{line}\n{ask}"),
        env={"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
    )
    assert (done.stdout, done.stderr) == ("push\n", "")


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_have_a_script_too(shell: str) -> None:
    asked = {"_ZQ_COMPLETE": f"{shell}_source"}
    result = CliRunner().invoke(main, [], prog_name="zq", env=asked)
    assert "_ZQ_COMPLETE=" in result.stdout
    assert f"{shell}_complete" in result.stdout


@pytest.mark.parametrize(("word", "ours"), [("retry", "requeue"), ("ls", "jobs"), ("add", "push")])
def test_what_other_queues_call_a_command_names_ours(word: str, ours: str) -> None:
    result = CliRunner().invoke(main, [word, "mail"])
    assert result.exit_code == 2
    assert f"no command is called {word}; zq {ours} is what you mean" in result.stderr


def test_no_word_of_another_queue_is_a_command_of_ours() -> None:
    assert set(MEANT) <= set(main.commands)
    assert not {word for words in MEANT.values() for word in words} & set(main.commands)


def test_the_help_says_in_a_whole_line_what_each_command_does() -> None:
    shown = CliRunner().invoke(main, ["--help"], terminal_width=80).stdout
    sections = shown.partition("Run:")[2].partition("Examples:")[0]
    assert "..." not in sections
    assert max(map(len, sections.splitlines())) <= 80
