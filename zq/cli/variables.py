"""Names the variables of the environment that look like zq's and that nothing reads."""

import os
from collections.abc import Iterable, Iterator

import click

from zq.config import SETTINGS
from zq.model.names import near

PREFIXES = ("ZQ_", "ZIZQ_")

ELSEWHERE = ("CHECK_CALLS", "COMPLETE", "LICENSE_KEY")
"""Variables that are no setting, and no option of a command."""


def unread_variables(root: click.Command, *, all: bool) -> Iterator[str]:
    """A message about each variable that nothing reads.

    Without `all`, only of those that are like one that is read.
    """
    own = _names(setting.variable for setting in SETTINGS)
    known: set[str] | None = None
    for variable in sorted(os.environ):
        prefix = next((each for each in PREFIXES if variable.startswith(each)), None)
        if prefix is None:
            continue
        name = variable.removeprefix(prefix)
        # The commands are imported only for a variable that is no setting of the server.
        if name in own or name in (known := known or own | _names(_of_options(root))):
            continue
        meant = [prefix + each for each in near(name, known)]
        if meant:
            yield f"zq does not read {variable}; did you mean {' or '.join(meant)}?"
        elif all:
            yield f"zq does not read {variable}"


def _names(variables: Iterable[str]) -> set[str]:
    """The names of the variables that commands read, without their prefixes."""
    return {*(name.partition("_")[2] for name in variables), *ELSEWHERE}


def _of_options(command: click.Command) -> Iterator[str]:
    for option in command.params:
        named = option.envvar or ()
        yield from [named] if isinstance(named, str) else named
        # Flags of Zizq without a meaning here have variables too.
        if isinstance(option, click.Option) and option.hidden:
            yield "ZQ_" + option.opts[-1].removeprefix("--").replace("-", "_").upper()
    if isinstance(command, click.Group):
        for each in command.commands.values():
            yield from _of_options(each)
