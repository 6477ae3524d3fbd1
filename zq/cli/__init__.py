"""The command `zq`. Each command has its own file, and imports its requirements when it runs."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click

from zq import __version__
from zq.cli.audit import audit
from zq.cli.backup import backup
from zq.cli.budgets import budgets
from zq.cli.cancel import cancel
from zq.cli.change import change
from zq.cli.check import check
from zq.cli.compact import compact
from zq.cli.cron import cron
from zq.cli.damage import damage
from zq.cli.dead import dead
from zq.cli.delete import delete
from zq.cli.history import history
from zq.cli.jobs import jobs
from zq.cli.keys import keys
from zq.cli.mark import mark
from zq.cli.pause import pause, resume
from zq.cli.pipeline import pipeline
from zq.cli.push import push
from zq.cli.queues import queues
from zq.cli.relay import relay
from zq.cli.requeue import requeue
from zq.cli.restore import restore
from zq.cli.salvage import salvage
from zq.cli.schema import schema
from zq.cli.serve import serve
from zq.cli.settings import settings
from zq.cli.status import status
from zq.cli.sweeps import sweeps
from zq.cli.terminal import harmless, interrupted
from zq.cli.tls import tls
from zq.cli.top.command import top
from zq.cli.wait import wait
from zq.cli.worker import worker
from zq.cli.workers import workers


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
    """Runs `serve` if no command is named: `zq --port 0` is `zq serve --port 0`."""

    def main(self, *args: Any, **kwargs: Any) -> Any:
        _open_standard_descriptors()
        return super().main(*args, **kwargs)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        rest = args
        while rest and rest[0].partition("=")[0] in ("--root-dir", "-k", "--license-key"):
            rest = rest[1 if "=" in rest[0] else 2 :]
        own = rest[:1] in (["--help"], ["-h"], ["--version"])
        # A shell that completes the first word asks for the commands.
        bare = not rest and not ctx.resilient_parsing
        if bare or (rest and rest[0].startswith("-") and not own):
            args = ["serve", *args]
        with _in_one_line():
            return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        with _in_one_line():
            return super().invoke(ctx)


@click.group(
    cls=_Commands,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="""\b
Examples:
  zq                                   serve ./zq-root on 127.0.0.1:7890
  zq serve --root-dir /var/lib/zq      keep the data elsewhere
  zq serve --help                      all settings, each with its variable
  zq keys add shop --scopes enqueue    make an access key
  zq tls init --client worker-1        make certificates
  zq backup zq.tar.gz                  copy all that a running server stores; see zq restore
  zq push mail hello                   enqueue a job; zq wait ID waits for its result
  zq queues                            show what waits, runs and fails; see zq jobs, zq dead
  zq settings mail concurrency=5       change a queue; see zq pause, zq schema
  zq delete --queue mail               delete jobs; see zq cancel, zq requeue, zq change
  zq workers list                      show who takes jobs
  zq mark "release 1.8.2"              name this moment in the charts
  zq cron list                         show schedules; see zq cron --help
  zq budgets list                      show how many jobs may run at once; see zq budgets --help
  zq sweeps list                       show changes of many jobs; zq audit shows who did what
  zq top                               watch the jobs on a terminal
  zq worker shop.jobs:app              execute the jobs of an app in Python
  zq relay --database URL              enqueue what programs wrote into their outbox
  zq history export --out history      copy the history of jobs to files
  zq pipeline run --help               turn job history into a lake, on Spark
""",
)
@click.version_option(__version__, prog_name="zq", message="%(prog)s %(version)s")
@click.option("--root-dir", metavar="PATH", help="The same as --root-dir of the command.")
@click.option("-k", "--license-key", hidden=True)
@click.pass_context
def main(ctx: click.Context, root_dir: str | None, license_key: str | None) -> None:
    """A persistent job queue for one host.

    Without a command, zq runs serve.
    """
    before_command = {"root_dir": root_dir, "license_key": license_key}
    given = {name: text for name, text in before_command.items() if text is not None}
    ctx.default_map = {"serve": given, "check": given, "restore": given}
    if root_dir is not None:
        ctx.default_map["tls"] = {name: {"root_dir": root_dir} for name in tls.commands}


SERVICE = (
    *(serve, worker, relay, check, salvage, damage, backup, restore, compact),
    *(history, keys, tls, pipeline),
)
PEOPLE = (
    *(push, wait, status, change, cancel, delete, jobs, dead, requeue, queues, pause, resume),
    *(settings, schema),
    *(cron, budgets, workers, sweeps, audit, mark),
)
ADMIN = (top,)

for command in (*SERVICE, *PEOPLE, *ADMIN):
    main.add_command(command)
