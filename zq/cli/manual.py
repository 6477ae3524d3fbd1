"""The manual page `zq(1)`, made from the commands: `python -m zq.cli.manual > docs/zq.1`."""

import re
from collections.abc import Iterator

import click

from zq import __version__
from zq.cli.group import main
from zq.cli.terminal import say

FOOT = """\
.SH ENVIRONMENT
Each option of
.B zq serve
and
.B zq worker
has a variable, which stands beside it.
.SH FILES
.TP
.I zq\\-root
The directory of the data, unless \\fB\\-\\-root\\-dir\\fR names another one.
"""


def page() -> str:
    """The page in the language of man."""
    root = click.Context(main, info_name="zq", **main.context_settings)
    title, _, rest = (main.help or "").partition("\n")
    return "\n".join(
        [
            f'.TH ZQ 1 "" "zq {__version__}" "zq"',
            ".SH NAME",
            f"zq \\- {_plain(title.rstrip('.'))}",
            ".SH SYNOPSIS",
            _synopsis(root),
            ".SH DESCRIPTION",
            *_prose(rest),
            ".SH OPTIONS",
            *_options(root),
            ".SH COMMANDS",
            *(line for context in _commands(root) for line in _section(context)),
            FOOT.rstrip(),
            ".SH EXAMPLES",
            *_prose(main.epilog),
            "",
        ]
    )


def _commands(parent: click.Context) -> Iterator[click.Context]:
    """The commands below one, and those below them, by name."""
    group = parent.command
    assert isinstance(group, click.Group)
    for name in group.list_commands(parent):
        command = group.get_command(parent, name)
        if command is None or command.hidden:
            continue
        context = click.Context(command, info_name=name, parent=parent)
        yield context
        if isinstance(command, click.Group):
            yield from _commands(context)


def _section(context: click.Context) -> Iterator[str]:
    command = context.command
    yield f".SS {_plain(context.command_path)}"
    yield _synopsis(context)
    yield from _prose(command.help)
    yield from _options(context)
    yield from _prose(command.epilog)


def _synopsis(context: click.Context) -> str:
    words = " ".join(context.command.collect_usage_pieces(context))
    return f"\\fB{_plain(context.command_path)}\\fR {_plain(words)}"


def _options(context: click.Context) -> Iterator[str]:
    for parameter in context.command.get_params(context):
        names, text = parameter.get_help_record(context) or ("", "")
        # Arguments stand in the synopsis, and the text of the command tells what they are.
        if text and "--help" not in parameter.opts:
            yield from (".TP", f"\\fB{_plain(names)}\\fR", _plain(" ".join(text.split())))


def _prose(text: str | None) -> Iterator[str]:
    """Paragraphs; one that click keeps as it is (`\\b`) is kept here, too."""
    for paragraph in re.split(r"\n\s*\n", (text or "").strip("\n")):
        if paragraph.lstrip().startswith("\b"):
            lines = paragraph.lstrip().lstrip("\b").strip("\n").splitlines()
            yield from (".PP", ".nf", *(_plain(line) for line in lines), ".fi")
        elif paragraph.strip():
            yield from (".PP", _plain(" ".join(paragraph.split())))


def _plain(text: str) -> str:
    """Text without a meaning for man: no escapes, no requests, hyphens that can be copied."""
    escaped = text.replace("\\", "\\e").replace("-", "\\-")
    return re.sub(r"^([.'])", r"\\&\1", escaped)


if __name__ == "__main__":
    for line in page().splitlines():
        say(line)
