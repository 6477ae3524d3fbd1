"""`zq relay`: moves the jobs of an outbox to the server until it is told to stop."""

import asyncio
import signal
from typing import TYPE_CHECKING, get_args

import click

from zq import logs, systemd
from zq.cli.remote import ServerAddress, addressed, explained, tell_server
from zq.cli.terminal import say
from zq.config import LogFormat, LogLevel

if TYPE_CHECKING:
    from zq.client.app import App
    from zq.outbox import Relay

_LEVELS = get_args(LogLevel)
_FORMATS = get_args(LogFormat)


@click.command(
    short_help="Enqueue what programs wrote into the outbox of a database.",
    epilog="""\b
Examples:
  zq relay --database postgresql:///shop --ddl     print what creates the tables
  zq relay --database postgresql:///shop           move rows as they are committed
  zq relay --database sqlite:///srv/shop.db --burst

While the database or the server is away, the relay waits. Several relays of a database are safe.
""",
)
@click.option(
    "--database",
    metavar="URL",
    required=True,
    envvar="ZQ_RELAY_DATABASE",
    show_envvar=True,
    help="The database with the outbox: postgresql://… or sqlite:///FILE.",
)
@click.option("--ddl", is_flag=True, help="Print the SQL that creates the tables, and end.")
@click.option("--burst", is_flag=True, help="Move the rows that are there, and end.")
@addressed
@click.option("--log-level", type=click.Choice(_LEVELS), default="info", help="As for serve.")
@click.option("--log-format", type=click.Choice(_FORMATS), help="As for serve.")
def relay(
    server: ServerAddress,
    database: str,
    ddl: bool,
    burst: bool,
    log_level: str,
    log_format: str | None,
) -> None:
    """Enqueue the jobs that programs have written into the outbox of a database."""
    from zq.client.app import App
    from zq.client.connect import connect
    from zq.outbox import Relay
    from zq.outbox.relay import dialect_of
    from zq.outbox.table import ddl as ddl_of

    logs.set_up(log_level, log_format)
    with explained():
        if ddl:
            for line in ddl_of(dialect_of(database)).splitlines():
                say(line)
            return
        tell_server(server.named)
        app = App(backend=connect(server.url, server.token, tls=server.tls, must_exist=True))
        asyncio.run(_run(app, Relay(app, database), burst))


async def _run(app: "App", relay: "Relay", burst: bool) -> None:
    loop = asyncio.get_running_loop()
    async with app:
        moving = asyncio.create_task(relay.run_until_empty() if burst else relay.run())
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, moving.cancel)
        systemd.ready()
        await asyncio.wait([moving])
        if not moving.cancelled():
            moving.result()
