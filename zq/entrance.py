"""An entrance: an address to listen on, the clients that may enter, and its certificates."""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from collections import Counter
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from zq.config import Settings
from zq.engine.inbox import PendingReply
from zq.http.guard import Browsers, Guard
from zq.http.transport.addresses import is_loopback, is_wildcard, listening_hosts, parse_address
from zq.http.transport.answer import Responder
from zq.http.transport.gate import Gate
from zq.http.transport.h2.codec import MakeCodec
from zq.http.transport.listener import Listener
from zq.http.transport.ports import url
from zq.http.transport.tls import CertificateError, CertificateFiles, Certificates
from zq.http.transport.turns import LoopTurns
from zq.model.clock import Clock
from zq.model.keys import KeyRing
from zq.setting import ConfigError

log = logging.getLogger("zq.serve")

ADMIN_PORT = 8901
"""The default port of the admin listener."""

ADMIN_CONNECTIONS = 128
"""The most connections to the admin listener. They are counted separately: if producers and workers
use up theirs, an operator can still look at the server."""


class ListeningPlace(NamedTuple):
    """The address of an entrance, and the prefix of its flags."""

    api: str
    prefix: str
    host: str
    port: int
    cert: Path | None
    key: Path | None
    client_ca: Path | None
    max_connections: int
    max_per_peer: int

    @classmethod
    def primary(cls, settings: Settings) -> ListeningPlace:
        """The entrance for clients."""
        return cls(
            *("primary", "--", settings.host, settings.port),
            *(settings.tls_cert, settings.tls_key, settings.tls_client_ca),
            settings.max_connections,
            settings.max_connections_per_peer,
        )

    @classmethod
    def admin(cls, settings: Settings) -> ListeningPlace:
        """The entrance for operators."""
        port = ADMIN_PORT if settings.admin_port is None else settings.admin_port
        return cls(
            *("admin", "--admin-", settings.admin_host, port),
            *(settings.admin_tls_cert, settings.admin_tls_key, settings.admin_tls_client_ca),
            max_connections=ADMIN_CONNECTIONS,
            max_per_peer=0,
        )


class Entrance:
    """One of the server's entrances. `prepare`, then `listen`, then `stop`."""

    def __init__(
        self,
        place: ListeningPlace,
        settings: Settings,
        clock: Clock,
        refused: Counter[str],
        turns: LoopTurns,
        passed: socket.socket | None = None,
    ) -> None:
        """`passed` is a socket that listens already. It replaces the place's host and port."""
        self.gate = Gate(
            clock,
            refused,
            max_connections=place.max_connections,
            max_per_peer=place.max_per_peer,
            fixed="admin listener" if place.api == "admin" else None,
        )
        self.guard: Guard
        self._place = place
        self._settings = settings
        self._clock = clock
        self._turns = turns
        self._passed = passed
        self._certificates: Certificates | None = None
        self._listener: Listener | None = None
        self._address = ("", 0)

    @property
    def name(self) -> str:
        """`primary` or `admin`."""
        return self._place.api

    @property
    def url(self) -> str:
        """The address on which it listens."""
        return url(self._address, self.scheme)

    @property
    def scheme(self) -> str:
        """`https` with TLS, else `http`."""
        return "http" if self._place.cert is None else "https"

    @property
    def port(self) -> int:
        return self._address[1]

    @property
    def tls(self) -> ssl.SSLContext | None:
        """The listener's side of TLS; None if it speaks none. Other listeners may use it too."""
        return None if self._certificates is None else self._certificates.context

    @property
    def has_certificates(self) -> bool:
        """True if it speaks TLS."""
        return self._certificates is not None

    async def prepare(self, keys: KeyRing | None, public_url: str | None) -> None:
        """Check whether it can be opened. Raises `ConfigError` or `CertificateError`.

        `public_url` is where a proxy shows it.
        """
        place, settings = self._place, self._settings
        await self._refuse_exposure()
        # Some systems accept 0.0.0.0 for this machine. A page must not enter by that name.
        everywhere = is_wildcard(place.host)
        own = () if everywhere else (place.host,)
        names, own_origin = settings.allow_host or (), None
        if public_url is not None:
            public = urlsplit(public_url)
            names = (*names, public.hostname or "")
            own_origin = f"{public.scheme}://{public.netloc}".lower()
        browsers = Browsers(
            (*own, *names),
            settings.allow_origin or (),
            public=own_origin,
            any_address=everywhere and settings.insecure,
        )
        self.guard = Guard(browsers, keys)
        if place.cert is not None and place.key is not None:
            files = CertificateFiles(place.cert, place.key, place.client_ca, place.prefix)
            self._certificates = Certificates(files)

    async def listen(self, responder: Responder, make_codec: MakeCodec) -> None:
        """Answer requests from now on. Raises `ListenError`."""
        place, settings = self._place, self._settings
        listener = Listener(
            responder,
            settings.access_log,
            api=place.api,
            replies=PendingReply,
            gate=self.gate,
            clock=self._clock,
            turns=self._turns,
            header_timeout=settings.header_timeout / 1000,
            make_codec=make_codec,
            tls=self.tls,
        )
        self._address = await listener.start(place.host, place.port, self._passed, place.prefix)
        self._listener = listener

    def announce(self) -> None:
        """Log the address. Scripts read this line."""
        address = self.url.removeprefix(f"{self.scheme}://")
        fields = {"api": self._place.api, "addr": address, "scheme": self.scheme}
        if self._passed is not None:
            fields["socket"] = "passed"
        log.info("listening", extra={"fields": fields})

    def reload_certificates(self) -> None:
        """Read the certificates again for new connections. Bad ones are logged and not used."""
        if self._certificates is None:
            return
        fields = {"api": self._place.api}
        try:
            self._certificates.reload()
        except CertificateError as error:
            log.error(f"the certificates stay as they are: {error}", extra={"fields": fields})
        else:
            log.info("certificates reloaded", extra={"fields": fields})

    async def stop(self, patience: float) -> None:
        """Let requests under way finish for up to `patience` seconds, then close."""
        if self._listener is not None:
            await self._listener.stop(patience)

    async def _refuse_exposure(self) -> None:
        """Raise ConfigError if anybody who reaches this machine could use the queue."""
        place, settings = self._place, self._settings
        if settings.keys is not None or place.client_ca is not None or settings.insecure:
            return
        if self._passed is not None:
            addresses = [str(self._passed.getsockname()[0])]
            source = f"ListenStream={addresses[0]}"
        else:
            loop = asyncio.get_running_loop()
            source = f"{place.prefix}host {place.host}"
            addresses = []
            for host in listening_hosts(place.host):
                if parse_address(host) is not None:
                    addresses.append(host)
                    continue
                try:
                    found = await loop.getaddrinfo(host, place.port, flags=socket.AI_PASSIVE)
                except OSError:
                    return  # the listener reports the error
                addresses += [str(address[0]) for *_, address in found]
        if not all(map(is_loopback, addresses)):
            raise ConfigError(
                f"{source}: everyone who reaches this machine could do everything. Give --keys FILE"
                f" (see `zq keys`) or {place.prefix}tls-client-ca, stay on 127.0.0.1, or permit it"
                " with --insecure where the network keeps strangers out"
            )
