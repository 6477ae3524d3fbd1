"""Writes the output of commands.

All output passes through here. Otherwise a client that names a queue could control an operator's
terminal. Characters that are not printable (control characters, marks that change the direction of
text, line breaks in names) are shown as escapes.
"""

import sys

import click
from click.exceptions import NoArgsIsHelpError

EX_INTERRUPTED = 130
"""The exit code that shells give to a command that SIGINT has ended."""

RENEW = "\r\x1b[K"
"""Returns to the beginning of the line, and clears it."""


def say(text: str, *, err: bool = False) -> None:
    """Print a line."""
    click.echo(escaped(text), err=err)


def say_json(document: str) -> None:
    """Print a line of JSON. Escapes leave its meaning the same."""
    if not document.isprintable():
        document = "".join(map(_json_shown, document))
    click.echo(document)


def say_over(text: str) -> None:
    """Print over the last line of this kind. Nothing is printed if stderr is not a terminal."""
    if sys.stderr.isatty():
        click.echo(RENEW + escaped(text), nl=False, err=True)


def escaped(text: str) -> str:
    """The text with escapes for characters that are not printable."""
    return text if text.isprintable() else "".join(map(_shown, text))


def one_line(text: str) -> str:
    """A text that is safe for a terminal, with one space for each run of blanks and line breaks."""
    return escaped(" ".join(text.split()))


def counted(number: int, thing: str) -> str:
    """A number of things in words: `1 job`, `1,500 jobs`."""
    return f"{number:,} {thing}" if number == 1 else f"{number:,} {thing}s"


def harmless(error: click.ClickException) -> click.ClickException:
    """An error in one line, safe for a terminal, without the usage text."""
    if isinstance(error, NoArgsIsHelpError):
        return error
    message = one_line(error.format_message())
    if isinstance(error, click.UsageError):
        path = "zq" if error.ctx is None else error.ctx.command_path
        end = "" if message.endswith("?") else "."
        message = f"{message.rstrip('.')}{end} See `{path} --help`"
    return _Told(message, error.exit_code)


def interrupted() -> click.ClickException:
    """The error for Ctrl-C, with the exit code that shells use."""
    return _Told("interrupted", EX_INTERRUPTED)


class _Told(click.ClickException):
    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.exit_code = code  # type: ignore[misc]  # it comes from the original error


def _shown(character: str) -> str:
    if character.isprintable():
        return character
    return character.encode("unicode_escape").decode()


def _json_shown(character: str) -> str:
    if character.isprintable():
        return character
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))
