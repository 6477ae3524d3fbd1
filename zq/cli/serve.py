"""`zq serve`: runs a server until it is told to stop."""

import gc
import logging
import os
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import click

from zq import logs
from zq.cli.variables import unread_variables
from zq.config import SETTINGS, Settings
from zq.lightly import import_aiohttp_lightly
from zq.setting import SWITCH, ConfigError, Setting, variable_given

if TYPE_CHECKING:
    from zq.logfile import RotatingFile

log = logging.getLogger("zq.serve")

# Flags of Zizq without a meaning here. They are accepted, since scripts for Zizq pass them.
_IGNORED = (
    "--complete-batch-size",
    "--enqueue-batch-size",
    "--license-key",
    "--license-key-check-interval",
)
_SHORT = {"--license-key": "-k"}


class _StartError(click.ClickException):
    exit_code = os.EX_CONFIG  # systemd does not restart a service after this code


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


@click.command(
    params=list(_options()),
    epilog="""\b
Examples:
  zq serve --root-dir /var/lib/zq --port 7890
  zq serve --port 0 --log-format json      any free port; the log names it
  ZQ_DEFAULT_RETRY_LIMIT=5 zq serve        a variable instead of a flag

Durations have a unit: 500ms, 3s, 10m, 1h, 7d. Sizes are bytes, or 512KiB, 64MiB, 256MB. If ZQ_… is
unset, ZIZQ_… is read; a number without a unit is milliseconds there. Other flags of Zizq are
accepted and ignored; the log names each.
""",
)
@click.pass_context
def serve(ctx: click.Context, /, **flags: Any) -> None:
    """Run the server.

    Exit codes: 0 after a clean stop, 2 for an unknown flag, 74 after an I/O error or if the port is
    in use, 75 if another server owns the directory or another program locks the database, 78 if a
    setting cannot be used.
    """
    try:
        settings = Settings.load(flags, os.environ)
    except ConfigError as error:
        raise _StartError(str(error)) from None

    # What is imported stays. The collector would look through it a hundred times.
    gc.disable()
    # uvloop brings TLS in any case.
    import_aiohttp_lightly(with_tls=settings.event_loop == "uvloop" or bool(settings.tls_cert))
    from zq import serving

    serving.prepare_process()
    logs.set_up(settings.log_level, settings.log_format, file=_log_file(settings))
    for text in unread_variables(ctx.find_root().command, all=True):
        log.warning(text)
    for source in _given(_IGNORED, flags):
        logs.event(log, logs.WARN, "ignored flag", flag=source)
    ctx.exit(serving.serve(settings))


def _log_file(settings: Settings) -> "RotatingFile | None":
    directory = settings.log_directory
    if directory is None:
        return None
    from zq.logfile import RotatingFile

    try:
        return RotatingFile(
            directory, settings.log_rotation, settings.log_max_size, settings.log_max_files
        )
    except OSError as error:
        raise _StartError(
            f"--log-dir: the log cannot be written to {directory}: {error}. Name another directory,"
            " or leave --log-to-disk out"
        ) from None


def _given(flags: tuple[str, ...], values: Mapping[str, object]) -> Iterator[str]:
    """The source of each of `flags` that was given: the flag itself, or a variable."""
    for flag in flags:
        if values[_name(flag)] is not None:
            yield flag
        elif variable := variable_given(f"ZQ_{_name(flag).upper()}", os.environ):
            yield variable[0]
