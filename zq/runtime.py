"""The composition root: what a server is made of, in which order it starts, and how it stops."""

import asyncio
import contextlib
import gc
import logging
import os
import resource
import signal
import socket
import sqlite3
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

from zq import activation, heap, keyfile, logs, notify
from zq.config import ConfigError, Settings
from zq.core import Core
from zq.engine.engine import Engine
from zq.engine.lag import LagMeter
from zq.http.addresses import is_loopback, is_wildcard
from zq.http.answers import Answers
from zq.http.app import build_app
from zq.http.bodies import Bodies
from zq.http.browsers import Browsers
from zq.http.gate import Gate
from zq.http.guard import Guard
from zq.http.h2.choice import LibraryMissing, codec_by
from zq.http.listener import Listener, ListenError, url
from zq.http.metrics.api import MetricsApi
from zq.http.metrics.scrape import Sources
from zq.http.native.take import TakeOptions
from zq.http.tls import CertificateError, CertificateFiles, Certificates
from zq.http.turns import Turns
from zq.model.clock import Clock
from zq.model.keys import InvalidKey
from zq.store.files import FILE_NAME, FilesMoved
from zq.store.lock import DirectoryInUse
from zq.store.migrate import DatabaseTooNew, ForeignDatabase
from zq.wire.bodies import Limits

log = logging.getLogger("zq.serve")

EX_SOFTWARE = os.EX_SOFTWARE
EX_IOERR = os.EX_IOERR
EX_TEMPFAIL = os.EX_TEMPFAIL
EX_CONFIG = os.EX_CONFIG

OWN_DESCRIPTORS = 128
"""Descriptors that are no connection: the database's, the log's, and some to spare."""

CLOSE_TIMEOUT_S = 1.0
"""How long requests under way may take once the drain is over."""


class Server:
    """One server over one data directory. `start`, then `stop`."""

    def __init__(
        self,
        settings: Settings,
        *,
        clock: Clock | None = None,
        rng: Random | None = None,
        passed: socket.socket | None = None,
    ) -> None:
        """`passed` listens already, in place of the settings' host and port."""
        self._settings = settings
        self._passed = passed
        self._core = Core(settings, clock=clock, rng=rng)
        self._clock = self._core.clock
        self._guard: Guard | None = None
        self._listener: Listener | None = None
        self._certificates: Certificates | None = None
        self._address = ("", 0)

    @property
    def engine(self) -> Engine:
        """The engine, once the server has started."""
        return self._core.engine

    @property
    def url(self) -> str:
        """Where it listens."""
        return url(self._address, self.scheme)

    @property
    def scheme(self) -> str:
        """`https` with TLS, else `http`."""
        return "http" if self._settings.tls_cert is None else "https"

    @property
    def port(self) -> int:
        """The port that it listens on."""
        return self._address[1]

    async def start(self) -> None:
        """Recover the data, then accept requests. Leaves nothing open where it fails."""
        settings = self._settings
        await _refuse_exposure(settings, self._passed)
        self._guard = _guard(settings)
        self._certificates = _certificates(settings)
        make_codec = codec_by(settings.http2_engine)
        await self._core.start()
        bodies = Bodies(
            settings.max_body,
            settings.max_inbox_bytes,
            settings.body_timeout / 1000,
            self._clock,
            Turns(self.engine),
        )
        answers = Answers(
            self._clock,
            max_bytes=settings.max_answer_bytes,
            timeout=settings.answer_timeout / 1000,
        )
        gate = _gate(settings, self._clock)
        self._lag = LagMeter()
        app = build_app(
            self.engine,
            self._guard,
            bodies,
            answers,
            Limits(settings.max_body, settings.max_payload, settings.max_bulk_items),
            _take_options(settings),
            MetricsApi(Sources(self.engine, bodies, answers, gate, self._lag, logs.dropped_lines)),
        )
        self._listener = Listener(
            app,
            settings.access_log,
            gate=gate,
            clock=self._clock,
            header_timeout=settings.header_timeout / 1000,
            make_codec=make_codec,
            tls=None if self._certificates is None else self._certificates.context,
        )
        try:
            self._address = await self._listener.start(settings.host, settings.port, self._passed)
        except BaseException:
            self._lag.stop()
            await self._core.stop()
            raise
        if self._core.returned:
            fields = {"jobs": self._core.returned}
            log.info("jobs in flight at the last stop are ready again", extra={"fields": fields})

    def reload(self) -> None:
        """Read the keys and the certificates again, the latter for new connections.

        What is wrong with either is logged, and it stays as it is.
        """
        if self._settings.keys is None and self._certificates is None:
            log.info("nothing to reload: there are no keys and no certificates")
        if self._settings.keys is not None and self._guard is not None:
            try:
                self._guard.change_keys(keyfile.read(self._settings.keys))
            except InvalidKey as error:
                log.error(f"the keys stay as they are: {error}")
            else:
                log.info("keys reloaded")
        if self._certificates is not None:
            try:
                self._certificates.reload()
            except CertificateError as error:
                log.error(f"the certificates stay as they are: {error}")
            else:
                log.info("certificates reloaded")

    async def drain(self) -> None:
        """Deliver nothing more, and take acknowledgements until nothing is held or time is up."""
        self.engine.stop_delivering()
        if not self._settings.drain:
            return
        held = asyncio.Event()
        timer = self._clock.call_later(self._settings.drain / 1000, held.set)
        self.engine.when_nothing_is_held(held.set)
        await held.wait()
        timer.cancel()

    async def stop(self, *, drain: bool = True) -> None:
        """Drain, end the streams, give back what they held, commit, checkpoint, close."""
        assert self._listener is not None
        failed = self.engine.failure.done()
        if drain and not failed:
            await self.drain()
        self.engine.workers.end_all()
        self.engine.waiters.close()
        self.engine.events.close()
        self.engine.history.close()
        await self._listener.stop(CLOSE_TIMEOUT_S)
        self._lag.stop()
        await self._core.stop()


def serve(settings: Settings) -> int:
    """Run a server until a signal; the process's exit code (see sysexits.h)."""
    heap.share_one()
    factory: Callable[[], asyncio.AbstractEventLoop] | None = None
    with contextlib.suppress(ImportError):
        from uvloop import new_event_loop as factory
    with asyncio.Runner(loop_factory=factory) as runner:
        return runner.run(_serve(settings))


async def _serve(settings: Settings) -> int:
    signals = _catch_signals()
    try:
        passed = activation.passed_socket()
    except activation.ActivationError as error:
        log.error(str(error))
        return EX_CONFIG
    _allow_connections(settings.max_connections)
    server = Server(settings, passed=passed)
    asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, server.reload)
    code = await _start(server, settings)
    if code:
        return code
    # What is alive now stays alive; requests leave few cycles behind, so look for them seldom.
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)
    address = server.url.removeprefix(f"{server.scheme}://")
    fields = {"api": "primary", "addr": address, "scheme": server.scheme}
    if passed is not None:
        fields["socket"] = "passed"
    log.info("listening", extra={"fields": fields})
    notify.ready()
    watchdog = asyncio.create_task(_feed_watchdog(server.engine))
    stopping = asyncio.create_task(signals.get())
    ends: set[asyncio.Future[Any]] = {stopping, server.engine.failure}
    await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
    notify.stopping()
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
        # The second signal: leave as a crash would. The next start gives everything back.
        log.warning("leaving at once")
        logging.shutdown()
        os._exit(1)
    impatience.cancel()
    try:
        await stop
    except FilesMoved as error:
        log.error(str(error))
        return EX_IOERR
    except sqlite3.Error as error:
        log.error(f"the disk failed at the last moment, what was acknowledged is safe: {error}")
        return EX_IOERR
    log.info("Server stopped.")
    return 0


def _allow_connections(count: int) -> None:
    """Raise the limit on descriptors so that `count` connections fit beside the server's own."""
    need = count + OWN_DESCRIPTORS
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    allowed = need if hard == resource.RLIM_INFINITY else min(need, hard)
    if soft != resource.RLIM_INFINITY and soft < allowed:
        resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
    if allowed < need:
        log.warning(
            f"this process may have {hard} descriptors, too few for --max-connections: raise the"
            " limit (LimitNOFILE=, ulimit -Hn), or lower the setting"
        )


async def _start(server: Server, settings: Settings) -> int:
    """Start, or say in one line why that is not possible; the exit code, 0 if it runs."""
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
        CertificateError,
        LibraryMissing,
    ) as error:
        log.error(str(error))
        return EX_CONFIG
    except ListenError as error:
        log.error(str(error))
        return EX_IOERR
    except sqlite3.Error as error:
        file = Path(settings.root_dir) / FILE_NAME
        log.error(f"the database {file} cannot be used: {error}")
        return EX_IOERR
    except OSError as error:
        log.error(f"the directory {settings.root_dir} cannot be used (--root-dir): {error}")
        return EX_IOERR
    return 0


def _exit_code(failure: BaseException) -> int:
    return EX_IOERR if isinstance(failure, sqlite3.Error | OSError) else EX_SOFTWARE


def _catch_signals() -> asyncio.Queue[signal.Signals]:
    received: asyncio.Queue[signal.Signals] = asyncio.Queue()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, received.put_nowait, number)
    return received


async def _feed_watchdog(engine: Engine) -> None:
    """Tell systemd that the server lives: only once ticks and the database's thread have moved on."""
    interval = notify.watchdog_interval()
    while interval is not None:
        await engine.ping()
        notify.watchdog()
        await asyncio.sleep(interval)


async def _refuse_exposure(settings: Settings, passed: socket.socket | None) -> None:
    """Raise ConfigError where whoever reaches this machine could use the queue."""
    if settings.keys is not None or settings.tls_client_ca is not None or settings.insecure:
        return
    if passed is not None:
        addresses = [passed.getsockname()]
        source = f"ListenStream={addresses[0][0]}"
    else:
        loop = asyncio.get_running_loop()
        source = f"--host {settings.host}"
        try:
            found = await loop.getaddrinfo(settings.host, settings.port, flags=socket.AI_PASSIVE)
        except OSError:
            return  # The listener says what is wrong with it.
        addresses = [address for *_, address in found]
    if not all(is_loopback(str(address[0])) for address in addresses):
        raise ConfigError(
            f"{source}: whoever reaches this machine could do everything. Give --keys FILE (see"
            " `zq keys`) or --tls-client-ca, stay on 127.0.0.1, or permit it with --insecure where"
            " the network keeps strangers out"
        )


def _guard(settings: Settings) -> Guard:
    # Some systems take 0.0.0.0 for this machine: a page must not come in by that name.
    own = () if is_wildcard(settings.host) else (settings.host,)
    browsers = Browsers((*own, *(settings.allow_host or ())), settings.allow_origin or ())
    return Guard(browsers, None if settings.keys is None else keyfile.read(settings.keys))


def _gate(settings: Settings, clock: Clock) -> Gate:
    return Gate(
        clock,
        Counter(),
        max_connections=settings.max_connections,
        max_per_peer=settings.max_connections_per_peer,
    )


def _take_options(settings: Settings) -> TakeOptions:
    return TakeOptions(
        settings.heartbeat_interval / 1000,
        settings.stall_timeout / 1000,
        settings.max_streams_per_peer,
    )


def _certificates(settings: Settings) -> Certificates | None:
    if settings.tls_cert is None or settings.tls_key is None:
        return None
    files = CertificateFiles(settings.tls_cert, settings.tls_key, settings.tls_client_ca)
    return Certificates(files)
