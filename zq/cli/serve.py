"""`zq serve`: run a server until it is told to stop."""

import logging
import os
from collections.abc import Iterator, Mapping
from typing import Any

import click

from zq import logs
from zq.config import SETTINGS, ConfigError, Setting, Settings, variable_given
from zq.kinds import SWITCH

EX_CONFIG = 78  # sysexits.h; systemd does not restart a service that ends so

log = logging.getLogger("zq.serve")

# Zizq's flags that mean nothing here: scripts that start Zizq pass them, so they are taken.
_IGNORED = (
    "--admin-host",
    "--admin-port",
    "--admin-tls-cert",
    "--admin-tls-key",
    "--admin-tls-client-ca",
    "--complete-batch-size",
    "--enqueue-batch-size",
    "--license-key",
    "--license-key-check-interval",
    "--log-dir",
    "--log-max-files",
    "--log-max-size",
    "--log-rotation",
    "--max-budgets",
)
_IGNORED_SWITCHES = ("--log-to-disk", "--no-admin")
_SHORT = {"--license-key": "-k"}


class _StartError(click.ClickException):
    exit_code = EX_CONFIG


def _name(flag: str) -> str:
    return flag.removeprefix("--").replace("-", "_")


def _option(setting: Setting) -> click.Option:
    rule = setting.rule
    names = [setting.flag, *([rule.short] if rule.short else [])]
    help = f"{rule.help} [{setting.variable}; default: {setting.default_text}]"
    if rule.kind is SWITCH:
        return click.Option(names, help=help, is_flag=True, flag_value="yes", default=None)
    metavar = "|".join(rule.choices) or rule.kind.noun.upper()
    return click.Option(names, help=help, metavar=metavar)


def _options() -> Iterator[click.Parameter]:
    for setting in SETTINGS:
        yield _option(setting)
    for flag in _IGNORED:
        yield click.Option([flag, *([_SHORT[flag]] if flag in _SHORT else [])], hidden=True)
    for flag in _IGNORED_SWITCHES:
        yield click.Option([flag], is_flag=True, default=None, hidden=True)


@click.command(
    params=list(_options()),
    epilog="""\b
Examples:
  zq serve --root-dir /var/lib/zq --port 7890
  zq serve --port 0 --log-format json      any free port; the log tells which
  ZQ_DEFAULT_RETRY_LIMIT=5 zq serve        a variable instead of a flag

Durations have a unit: 500ms, 3s, 10m, 1h, 7d; sizes are bytes or 512KiB, 64MiB, 256MB. ZIZQ_… is
read where ZQ_… is unset; there a bare number is milliseconds. Zizq's other flags are taken and
ignored, with a log line each.
""",
)
@click.pass_context
def serve(ctx: click.Context, /, **flags: Any) -> None:
    """Run the server.

    Ends with 0 after a clean stop, 74 after an I/O error, 75 if another server owns the directory
    and 78 if a setting cannot be used.
    """
    try:
        settings = Settings.load(flags, os.environ)
    except ConfigError as error:
        raise _StartError(str(error)) from None

    from zq import runtime

    logs.set_up(settings.log_level, settings.log_format)
    for flag, source in _given((*_IGNORED, *_IGNORED_SWITCHES), flags):
        # Having no admin port is what --no-admin asks for.
        level = logs.DEBUG if flag == "--no-admin" else logs.WARN
        logs.event(log, level, "ignored flag", flag=source)
    ctx.exit(runtime.serve(settings))


def _given(flags: tuple[str, ...], values: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    """(flag, what gave it: the flag itself or a variable) of those `flags` that were given."""
    for flag in flags:
        if values[_name(flag)] is not None:
            yield flag, flag
        elif variable := variable_given(f"ZQ_{_name(flag).upper()}", os.environ):
            yield flag, variable[0]
