"""What commands write for people.

Everything goes through here, or whoever names a queue could steer an operator's terminal: what is
not printable (control characters of any sort, marks that turn the direction of text, line breaks in
names) is shown as an escape.
"""

import sys

import click
from click.exceptions import NoArgsIsHelpError

EX_INTERRUPTED = 130
"""What shells make of a command that SIGINT has ended."""

RENEW = "\r\x1b[K"
"""Back to the beginning of the line, which is cleared."""


def say(text: str, *, err: bool = False) -> None:
    """A line."""
    click.echo(escaped(text), err=err)


def say_json(document: str) -> None:
    """A line of JSON, which stays the same JSON."""
    if not document.isprintable():
        document = "".join(map(_json_shown, document))
    click.echo(document)


def say_over(text: str) -> None:
    """Over the last line that was said so, on a terminal; nowhere else."""
    if sys.stderr.isatty():
        click.echo(RENEW + escaped(text), nl=False, err=True)


def escaped(text: str) -> str:
    """The text with escapes for what is not printable."""
    return text if text.isprintable() else "".join(map(_shown, text))


def one_line(text: str) -> str:
    """The same, with a space for each line break and run of spaces: for prose."""
    return escaped(" ".join(text.split()))


def harmless(error: click.ClickException) -> click.ClickException:
    """The same error for the terminal, in one line. Usage is no part of what a mistake is told."""
    if isinstance(error, NoArgsIsHelpError):
        return error
    message = one_line(error.format_message())
    if isinstance(error, click.UsageError):
        path = "zq" if error.ctx is None else error.ctx.command_path
        end = "" if message.endswith("?") else "."
        message = f"{message.rstrip('.')}{end} See `{path} --help`"
    return _Told(message, error.exit_code)


def interrupted() -> click.ClickException:
    """Ctrl-C, with the exit code that shells have for it."""
    return _Told("interrupted", EX_INTERRUPTED)


class _Told(click.ClickException):
    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.exit_code = code  # type: ignore[misc]  # it comes from the error that is told


def _shown(character: str) -> str:
    if character.isprintable():
        return character
    return character.encode("unicode_escape").decode()


def _json_shown(character: str) -> str:
    if character.isprintable():
        return character
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))
