"""The process of a server: from its start until a signal, with the exit code for its end."""

import asyncio
import contextlib
import gc
import logging
import os
import resource
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from zq import systemd
from zq.config import Settings
from zq.engine.process import share_one_heap, trim_heap
from zq.entrance import ADMIN_CONNECTIONS
from zq.http.transport.h2.codec import LibraryMissing
from zq.http.transport.ports import ListenError
from zq.http.transport.tls import CertificateError
from zq.instance import database_of, place_of
from zq.model.clock import BOOT_ID, SystemClock
from zq.model.keys import InvalidKey
from zq.runtime import Server
from zq.service.services import Services
from zq.setting import ConfigError
from zq.store.errors import (
    DatabaseTooNew,
    DirectoryInUse,
    Fenced,
    FilesMoved,
    ForeignDatabase,
    RestoreUnfinished,
    StoreBusy,
    StoreError,
)

log = logging.getLogger("zq.serve")

EX_SOFTWARE = os.EX_SOFTWARE
EX_IOERR = os.EX_IOERR
EX_TEMPFAIL = os.EX_TEMPFAIL
EX_CONFIG = os.EX_CONFIG

CLOSING = "`zq keys add NAME --scopes SCOPES --keys FILE` and --keys FILE change that"

OWN_URL = "http://127.0.0.1:7890"
"""The address at which commands look for a server that nobody has named."""

OWN_DESCRIPTORS = 128
"""The descriptors besides connections: the database's, the log's, and some to spare."""


def prepare_process() -> None:
    """Prepare the process before its first thread, such as the one that writes the log."""
    # Whatever the server writes is its owner's alone: the database, logs, folders, copies.
    os.umask(0o077)
    share_one_heap()
    # Objects that exist by now will stay. Requests leave few cycles, so collect them seldom.
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)
    gc.enable()


def serve(settings: Settings) -> int:
    """Run a server until a signal. Return the process's exit code (see sysexits.h)."""
    factory: Callable[[], asyncio.AbstractEventLoop] | None = None
    if settings.event_loop == "uvloop":
        with contextlib.suppress(ImportError):
            from uvloop import new_event_loop as factory
    with asyncio.Runner(loop_factory=factory) as runner:
        return runner.run(_serve(settings))


async def _serve(settings: Settings) -> int:
    signals = _catch_signals()
    try:
        passed = systemd.passed_socket()
    except systemd.ActivationError as error:
        log.error(str(error))
        return EX_CONFIG
    server = Server(settings, passed=passed)
    _allow_connections(settings.max_connections + server.descriptors)
    _warn_without_boot()
    asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, server.reload)
    code = await _start(server, settings)
    if code:
        return code
    gc.collect()
    gc.freeze()
    trim_heap()
    for entrance in server.entrances:
        entrance.announce()
    _say_how_to_begin(server, settings)
    admin = server.admin_url is not None
    log.info(openness(settings, page="page" in server.places, admin=admin))
    systemd.ready()
    watchdog = asyncio.create_task(_feed_watchdog(server.services))
    stopping = asyncio.create_task(signals.get())
    ends: set[asyncio.Future[Any]] = {stopping, server.engine.failure}
    await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
    systemd.stopping()
    watchdog.cancel()
    if server.engine.failure.done():
        await server.stop()
        return _exit_code(server.engine.failure.result())
    log.info("stopping")
    stop = asyncio.create_task(server.stop())
    impatience = asyncio.create_task(signals.get())
    ends = {stop, impatience}
    await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
    if not stop.done():
        # The second signal: exit as in a crash. The next start returns all jobs.
        log.warning("leaving at once")
        logging.shutdown()
        os._exit(1)
    impatience.cancel()
    try:
        await stop
    except FilesMoved as error:
        log.error(str(error))
        return EX_IOERR
    except StoreError as error:
        log.error(f"the disk failed at the last moment, what was acknowledged is safe: {error}")
        return EX_IOERR
    if server.engine.failure.done():
        return _exit_code(server.engine.failure.result())
    log.info("Server stopped.")
    return 0


def _say_how_to_begin(server: Server, settings: Settings) -> None:
    """Log where the data is, the addresses of the API and of the page, and a command to try."""
    fields = {"data": place_of(settings), "server": server.url, **server.places}
    there = "" if server.url == OWN_URL else f" --url {server.url}"
    log.info("serving", extra={"fields": {**fields, "try": f"zq push mail hello{there}"}})


def openness(settings: Settings, *, page: bool, admin: bool) -> str:
    """What a server opens, to whom, and what changes that. Nothing else tells this at a start.

    `page` and `admin` say whether it has the operators' page and the admin listener.
    """
    parts = ["the queue", *(["the page"] if page else []), *(["backups"] if page or admin else [])]
    what = " and ".join(filter(None, (", ".join(parts[:-1]), parts[-1])))
    if settings.keys is not None:
        return f"open to keys: {what}"
    if settings.tls_client_ca is not None and not (admin and settings.admin_tls_client_ca is None):
        who = "every client with a certificate"
    elif settings.insecure:
        who = "everyone who reaches this server"
    else:
        who = "every program of this machine"
    return f"open without keys: {who} may use {what}; {CLOSING}"


def _allow_connections(count: int) -> None:
    """Raise the limit on descriptors so that `count` connections fit beside the server's own."""
    need = count + ADMIN_CONNECTIONS + OWN_DESCRIPTORS
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    allowed = need if hard == resource.RLIM_INFINITY else min(need, hard)
    if soft != resource.RLIM_INFINITY and soft < allowed:
        resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
    if allowed < need:
        log.warning(
            f"this process may have {hard} descriptors, too few for --max-connections: raise the"
            " limit (LimitNOFILE=, ulimit -Hn), or lower the setting"
        )


def _warn_without_boot() -> None:
    """Warn if a start after a reboot looks like any other."""
    if sys.platform == "linux" and SystemClock().boot is None:
        log.warning(
            f"{BOOT_ID} cannot be read, so each start counts as a reboot: if the clock is set"
            " meanwhile, durations change by as much (ProcSubset=pid in a unit hides that file)"
        )


async def _start(server: Server, settings: Settings) -> int:
    """Start, or say in one line why not. Return the exit code; 0 if it runs."""
    try:
        await server.start()
    except DirectoryInUse as error:
        log.error(str(error))
        return EX_TEMPFAIL
    except (
        ConfigError,
        InvalidKey,
        DatabaseTooNew,
        ForeignDatabase,
        RestoreUnfinished,
        CertificateError,
        LibraryMissing,
    ) as error:
        log.error(str(error))
        return EX_CONFIG
    except ListenError as error:
        log.error(str(error))
        return EX_IOERR
    except StoreError as error:
        place = place_of(settings) if settings.store else database_of(Path(settings.root_dir))
        log.error(f"the database {place} cannot be used: {error}")
        return EX_TEMPFAIL if isinstance(error, StoreBusy) else EX_IOERR
    except (FileExistsError, NotADirectoryError):
        log.error(
            f"{settings.root_dir} is a file, and --root-dir names a directory: choose another one"
        )
        return EX_IOERR
    except OSError as error:
        reason = f"{error.filename}: {error.strerror}" if error.filename else error
        log.error(
            f"the directory {settings.root_dir} cannot be used (--root-dir): {reason}: let its"
            " user write there, or choose another --root-dir"
        )
        return EX_IOERR
    return 0


def _exit_code(failure: BaseException) -> int:
    if isinstance(failure, Fenced):
        return EX_TEMPFAIL
    return EX_IOERR if isinstance(failure, StoreError | OSError) else EX_SOFTWARE


def _catch_signals() -> asyncio.Queue[signal.Signals]:
    received: asyncio.Queue[signal.Signals] = asyncio.Queue()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, received.put_nowait, number)
    return received


async def _feed_watchdog(services: Services) -> None:
    """Tell systemd that the server lives, whenever ticks and the database's thread have moved."""
    interval = systemd.watchdog_interval()
    while interval is not None:
        await services.admin.ping()
        systemd.watchdog()
        await asyncio.sleep(interval)
