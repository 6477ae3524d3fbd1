"""The command `zq`: its group of commands, under what people do with them."""

import os
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from typing import Any

import click

from zq import __version__
from zq.cli.terminal import harmless, interrupted, say
from zq.cli.variables import unread_variables

MEANT = {
    "requeue": ("retry", "redrive", "revive", "replay"),
    "push": ("add", "enqueue", "send", "submit", "create"),
    "jobs": ("ls", "list", "ps"),
    "status": ("show", "get", "info", "inspect", "why"),
    "failures": ("errors", "causes", "error-groups"),
    "delete": ("rm", "remove", "purge", "drop"),
    "cancel": ("abort", "kill"),
    "change": ("edit", "set-priority"),
    "queues": ("stats", "queue"),
    "serve": ("server", "start", "run", "up"),
    "settings": ("config", "set"),
    "cron": ("crons", "schedule", "schedules"),
    "health": ("ping", "doctor"),
}
"""Names of commands in other queues, so that the message for such a name can give ours."""

LOGGING = ("serve", "worker")
"""Commands that log which variables nothing reads."""

OF_DIRECTORIES = ("serve", "check", "restore", "tls")
"""Commands that have the option `--root-dir`."""


def _open_standard_descriptors() -> None:
    """Open /dev/null as 0, 1 and 2 if they are closed.

    Otherwise the next file or socket that is opened would get one of them. This process or a child
    would then read or write it as if it were the terminal.
    """
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest free number is this one


@contextmanager
def _in_one_line() -> Iterator[None]:
    try:
        yield
    except click.ClickException as error:
        raise harmless(error) from None
    except (KeyboardInterrupt, click.Abort):
        raise interrupted() from None


class _Commands(click.Group):
    """Shows the help if nothing is named. Options alone are those of `serve`: `zq --port 0`.

    `serve` is imported alone: a server has no use for the other commands, and keeps no memory for
    them.
    """

    @property
    def commands(self) -> MutableMapping[str, click.Command]:
        from zq.cli.every import SECTIONS

        if not self._commands:
            for command in (command for commands in SECTIONS.values() for command in commands):
                self.add_command(command)
        return self._commands

    @commands.setter
    def commands(self, commands: MutableMapping[str, click.Command]) -> None:
        self._commands = commands

    def add_command(self, cmd: click.Command, name: str | None = None) -> None:
        self._commands[name or str(cmd.name)] = cmd

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name == "serve":
            from zq.cli.serve import serve

            return serve
        return super().get_command(ctx, cmd_name)

    def main(self, *args: Any, **kwargs: Any) -> Any:
        _open_standard_descriptors()
        return super().main(*args, **kwargs)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        rest = args
        while rest and rest[0].partition("=")[0] in ("--root-dir", "-k", "--license-key"):
            rest = rest[1 if "=" in rest[0] else 2 :]
        own = rest[:1] in (["--help"], ["-h"], ["--version"])
        # A shell that completes the first word asks for the commands.
        if not args and not ctx.resilient_parsing:
            args = ["--help"]
        elif (args and not rest) or (rest and rest[0].startswith("-") and not own):
            args = ["serve", *args]
        with _in_one_line():
            return super().parse_args(ctx, args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Name our word for what the user has called otherwise."""
        ours = next((ours for ours, words in MEANT.items() if args[0] in words), None)
        if ours is not None and not ctx.resilient_parsing:
            what = self.commands[ours].get_short_help_str(70)
            ctx.fail(f"no command is called {args[0]}; zq {ours} is what you mean: {what}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands under what people do with them."""
        from zq.cli.every import SECTIONS

        width = formatter.width - 6 - max(map(len, self.commands))
        for section, commands in SECTIONS.items():
            with formatter.section(section):
                formatter.write_dl(
                    [(str(each.name), each.get_short_help_str(width)) for each in commands]
                )

    def invoke(self, ctx: click.Context) -> Any:
        with _in_one_line():
            return super().invoke(ctx)


@click.group(
    cls=_Commands,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="""\b
Examples:
  zq serve                             serve ./zq-root on 127.0.0.1:7890
  zq worker shop.jobs:app              run the jobs of an app in Python
  zq push mail hello                   store a job; zq wait ID waits for its result
  zq health                            is anything wrong? then zq queues, zq failures, zq dead
  zq requeue --queue mail              make dead jobs ready again
  zq backup zq.tar.gz                  copy all that a running server stores; see zq restore

`zq COMMAND --help` has the options and more examples of each command.
""",
)
@click.version_option(__version__, prog_name="zq", message="%(prog)s %(version)s")
@click.option("--root-dir", metavar="PATH", help="Data directory of serve, check, restore and tls.")
@click.option("-k", "--license-key", hidden=True)
@click.pass_context
def main(ctx: click.Context, root_dir: str | None, license_key: str | None) -> None:
    """A persistent job queue for one host.

    Options without a command are those of serve: `zq --port 0`.
    """
    if root_dir is not None and ctx.invoked_subcommand not in OF_DIRECTORIES:
        ctx.fail(
            f"zq {ctx.invoked_subcommand} takes no --root-dir, which is for serve, check, restore"
            " and tls: where a server is asked, --url names it"
        )
    before_command = {"root_dir": root_dir, "license_key": license_key}
    given = {name: text for name, text in before_command.items() if text is not None}
    if ctx.invoked_subcommand not in LOGGING:
        for text in unread_variables(ctx.command, all=False):
            say(text, err=True)
    ctx.default_map = {"serve": given, "check": given, "restore": given}
    if root_dir is not None and ctx.invoked_subcommand == "tls":
        from zq.cli.tls import tls

        ctx.default_map["tls"] = {name: {"root_dir": root_dir} for name in tls.commands}
