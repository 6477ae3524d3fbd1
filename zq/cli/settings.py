"""`zq settings`, `zq pause` and `zq resume`: what holds for all jobs of a queue."""

import re
import time
from typing import TYPE_CHECKING, Any

import click
import msgspec

from zq.cli.filtering import CREATE, check_queue, warn_of_queues
from zq.cli.output import print_json
from zq.cli.remote import Remote, talks
from zq.cli.terminal import one_line, say
from zq.cli.words import MILLISECONDS, NAME, json_of
from zq.model.names import meant

if TYPE_CHECKING:
    from zq.model.settings import SettingsPatch


@click.command(
    epilog="""\b
Examples:
  zq pause mail
  zq pause mail --for 2h --reason "the provider is down"
  zq resume mail

The queue still accepts jobs, and jobs in flight go on. The queue stays paused over restarts until
its time is over, or until `zq resume`. Lists and the operators' page show the reason. Exit codes:
0, 1 if the server refuses, 2 for wrong usage, 3 if no server answers.
"""
)
@click.argument("queue", type=NAME)
@click.option(
    "--for", "length", type=MILLISECONDS, metavar="TIME", help="How long. [until zq resume]"
)
@click.option("--reason", metavar="TEXT", help="Why, for those who see the queue paused.")
@CREATE
@talks
def pause(remote: Remote, queue: str, length: int | None, reason: str | None, create: bool) -> None:
    """Stop delivering the jobs of QUEUE."""
    from zq.model.settings import SettingsPatch

    check_queue(remote, queue, create=create)
    until = None if length is None else time.time_ns() // 1_000_000 + length
    patch = SettingsPatch(paused=True, pause_reason=reason, paused_until=until, paused_by=None)
    _set(remote, queue, patch)


@click.command(
    epilog="""\b
Examples:
  zq resume mail

Exit codes: 0 also for a queue that was not paused, 1 if the server refuses, 2 for wrong usage, 3 if
no server answers.
"""
)
@click.argument("queue", type=NAME)
@talks
def resume(remote: Remote, queue: str) -> None:
    """Deliver the jobs of QUEUE again."""
    from zq.model.settings import SettingsPatch

    warn_of_queues(remote, [queue])
    _set(remote, queue, SettingsPatch(paused=None))


def _set(remote: Remote, queue: str, patch: "SettingsPatch") -> None:
    from zq.model.settings import pause_text

    settings = remote.run(remote.backend.change_settings(queue, patch))
    if remote.as_json:
        print_json({"queue": queue, "paused": bool(settings.paused)})
    else:
        does = f"is {pause_text(settings)}" if settings.paused else "delivers its jobs"
        say(f"{one_line(queue)} {does}")


class Assignment(click.ParamType[tuple[str, object]]):
    """The name of a setting and its value, in JSON or as a text: `rate=5`, `dead_letter=lost`."""

    name = "name=value"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, object]:
        if isinstance(value, tuple):
            return value
        name, equals, text = value.partition("=")
        if not equals:
            self.fail(f"{value!r} has no value: write {value}=VALUE, or {value}=null", param, ctx)
        try:
            return name, json_of(text)
        except ValueError:
            is_duration = name.endswith("_ms") and text[:1].isdecimal()
            return name, MILLISECONDS.convert(text, param, ctx) if is_duration else text


@click.command(
    epilog="""\b
Examples:
  zq settings mail                             show what is set
  zq settings mail concurrency=5 rate=20.5
  zq settings mail lease_ms=90s                a duration; 90000 is the same
  zq settings mail rate=null                   leave it to the server again
  zq settings mail 'retention={"completed_ms": 3600000}'

The names and values are those of PATCH /queues/mail/settings: numbers, true, false, null, JSON, or
a text. Settings work at once. Exit codes: 0, 1 if the server refuses, 2 for wrong usage, 3 if no
server answers.
"""
)
@click.argument("queue", type=NAME)
@click.argument("settings", nargs=-1, type=Assignment(), metavar="[NAME=VALUE]…")
@CREATE
@talks
def settings(
    remote: Remote, queue: str, settings: tuple[tuple[str, object], ...], create: bool
) -> None:
    """Show the settings of QUEUE, or change those that are named."""
    if settings:
        patch = _patch(dict(settings))
        check_queue(remote, queue, create=create)
        found = remote.run(remote.backend.change_settings(queue, patch))
    else:
        warn_of_queues(remote, [queue])
        found = remote.run(remote.backend.settings(queue))
    document: dict[str, object] = msgspec.to_builtins(found)
    if remote.as_json:
        print_json(document)
        return
    if not document:
        say(f"{one_line(queue)} has no settings of its own")
    for name, value in document.items():
        text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
        say(f"{name}  {one_line(text)}")


def _patch(given: dict[str, object]) -> "SettingsPatch":
    """The settings that are named. Raises `UsageError`."""
    from zq.model.errors import InvalidRequest
    from zq.model.settings import SettingsPatch
    from zq.wire import codecs
    from zq.wire.settings import decode_settings_patch

    known = SettingsPatch.__struct_fields__
    for name in given:
        if name not in known:
            others = meant(name, known) or f": there are {', '.join(sorted(known))}"
            raise click.UsageError(f"a queue has no setting {name!r}{others}")
    try:
        return decode_settings_patch(msgspec.json.encode(given), codecs.JSON)
    except InvalidRequest as error:
        raise click.UsageError(_in_words(error.message, given)) from None


def _in_words(message: str, given: dict[str, object]) -> str:
    """Why a value cannot be used, in the words of somebody who types it."""
    found = _WRONG.search(message)
    if found is None:
        return message.removeprefix("invalid JSON: ")
    place, kinds, bound = found.groups()
    first, *_ = kinds.split(" | ")
    wanted = _KINDS.get(first, first)
    if bound:
        sign, number = bound.split()
        wanted += f" {_BOUNDS[sign]} {number.removesuffix('.0')}"
    said = f", not {msgspec.json.encode(given[place]).decode()}" if place in given else ""
    return f"{place} must be {wanted}{said} (null leaves it to the server)"


_WRONG = re.compile(r"invalid JSON: ([\w.\[\]]+): expected ([\w |]+?)(?: ([<>=]+ [\d.]+))?(?:,|$)")
"""Messages of the reader of bodies about values of a wrong kind or size."""

_KINDS = {
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "str": "a text",
    "str of length": "a text with a length",
    "object": """a JSON object such as '{"completed_ms": 3600000}'""",
    "array": """a JSON list such as '["mail", "sms"]'""",
}
_BOUNDS = {">=": "of at least", ">": "above", "<=": "of at most", "<": "below"}
