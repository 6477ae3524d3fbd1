"""The manual page: man can show it, with every command."""

import subprocess

import click
from documents import ROOT

from zq.cli.group import main

PAGE = ROOT / "docs" / "zq.1"


def shown() -> str:
    """The page as man shows it on a wide terminal. Complaints are errors."""
    done = subprocess.run(
        ["groff", "-man", "-Tutf8", "-Kutf8", "-ww", "-P-c", "-P-b", "-P-u", "-rLL=200n", PAGE],
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_man_shows_every_command_with_its_options() -> None:
    text = " ".join(shown().split())
    for path, command in commands(main, "zq"):
        assert f"{path} " in text, path
        for parameter in command.params:
            if isinstance(parameter, click.Option) and parameter.help and not parameter.hidden:
                assert max(parameter.opts, key=len) in text, (path, parameter.opts)


def commands(group: click.Group, path: str) -> list[tuple[str, click.Command]]:
    found: list[tuple[str, click.Command]] = []
    for name, command in group.commands.items():
        found.append((f"{path} {name}", command))
        if isinstance(command, click.Group):
            found += commands(command, f"{path} {name}")
    return found


def test_what_means_something_to_man_is_text() -> None:
    text = shown()
    assert "zq push mail @letter.json" in text
    assert "…" in text
    assert "\\e" not in text
    assert "\\-" not in text
