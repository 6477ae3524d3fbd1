"""The door for queue-ti, opened: REST on the primary listener, and gRPC on one of its own.

What only users, REST or gRPC need is imported with them.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from zq.doors.queue_ti.settings import DOOR, QueueTiSettings
from zq.http.api.door import NativeRoutes
from zq.http.api.parts import ApiParts
from zq.http.door import Door, Later
from zq.http.guard import Guard
from zq.http.room_doors import RoomDoors
from zq.http.transport.gate import Gate
from zq.service.services import Services
from zq.setting import ConfigError

if TYPE_CHECKING:
    from zq.doors.queue_ti.http.calls import Defaults, MessageCalls
    from zq.doors.queue_ti.http.rpc.server import RpcServer
    from zq.doors.queue_ti.http.users import DoorAuth

log = logging.getLogger("zq.serve")

GRPC_CONNECTIONS = 1_024
"""The most connections of gRPC, which are at most half of all: a client needs only one."""

GRPC_DESCRIPTORS = 2 * GRPC_CONNECTIONS
"""A connection of gRPC is passed on to its library, which takes two more descriptors."""


class AuthFiles(NamedTuple):
    """The contents of the settings' files about users."""

    secret: bytes
    admin: tuple[str, str] | None
    """Name and password of the first administrator."""


class QueueTiDoors(RoomDoors):
    """`/api` on the primary listener, if the settings have the door, and gRPC if they have that."""

    _files: AuthFiles | None = None
    _auth: DoorAuth | None = None
    _rpc: RpcServer | None = None

    @property
    def own(self) -> QueueTiSettings:
        return self.settings[QueueTiSettings]

    @property
    def descriptors(self) -> int:
        return 0 if self.own.grpc_port is None else GRPC_DESCRIPTORS

    @property
    def ports(self) -> dict[str, int]:
        return {} if self._rpc is None else {"grpc": self._rpc.port}

    def prepare(self) -> None:
        """Raises `InvalidKey` or `LibraryMissing`."""
        if self.own.grpc_port is not None:
            from zq.doors.queue_ti.http.rpc import require_grpc

            require_grpc()
        if self.own.queue_ti_auth:
            self._files = self._read_files()

    async def start(self, parts: ApiParts, native: NativeRoutes) -> None:
        """Raises ConfigError if there are users to be and nobody could log in."""
        self._parts = parts
        if self._files is not None:
            self._auth = await _open_auth(self._files, parts.services)
        if self.own.grpc_port is not None:
            self._rpc = self._listener(self.own.grpc_port)
            await self._rpc.start()

    def later(self, listener: str, guard: Guard) -> list[Later]:
        if listener != "primary" or DOOR not in self.settings.doors:
            return []
        return [Later("/api", ["zq.doors.queue_ti.http.door"], self._door)]

    def _door(self) -> Sequence[Door]:
        from zq.doors.queue_ti.http.documents import UuidIds
        from zq.doors.queue_ti.http.door import QueueTiDoor, queue_ti_routes

        routes = queue_ti_routes(self._parts, self._calls(), self._defaults(), self._auth)
        return [QueueTiDoor(UuidIds(self._parts.services.ids), routes)]

    async def stop(self, patience: float) -> None:
        if self._rpc is not None:
            await self._rpc.stop(patience)

    def _read_files(self) -> AuthFiles:
        from zq.doors.queue_ti.http.access import read_admin, read_secret, require_auth

        require_auth()
        if self.settings.keys is None and self.settings.tls_client_ca is None:
            log.warning(
                "--queue-ti-auth without --keys: users are asked for below /api alone, and everyone"
                " who reaches this server may do everything by the native API: give --keys FILE"
            )
        admin = self.own.queue_ti_admin
        secret = read_secret(self.own.queue_ti_secret)
        return AuthFiles(secret, None if admin is None else read_admin(admin))

    def _listener(self, port: int) -> RpcServer:
        """The listener of gRPC. Its library is an extra."""
        from zq.doors.queue_ti.http.rpc.links import RpcLinks
        from zq.doors.queue_ti.http.rpc.server import RpcPlace, RpcServer
        from zq.doors.queue_ti.http.rpc.service import QueueService, RpcOptions

        parts, settings, links = self._parts, self.settings, RpcLinks()
        clock = parts.services.clock
        options = RpcOptions(
            parts.guard,
            None if self._auth is None else self._auth.access,
            parts.answers,
            parts.bodies,
            parts.refused,
            settings.max_streams_per_peer,
            self.own.grpc_window,
        )
        place = RpcPlace(
            settings.host,
            port,
            parts.tls,
            settings.max_body,
            settings.max_connections,
            settings.header_timeout,
        )
        gate = Gate(
            clock,
            parts.refused,
            max_connections=max(1, min(GRPC_CONNECTIONS, settings.max_connections // 2)),
            max_per_peer=0,
            fixed="gRPC listener",
            within=parts.gate,
        )
        return RpcServer(QueueService(self._calls(), links, options), links, place, gate, clock)

    def _calls(self) -> MessageCalls:
        from zq.doors.queue_ti.http.calls import MessageCalls
        from zq.doors.queue_ti.http.documents import UuidIds

        services = self._parts.services
        ids = UuidIds(services.ids)
        return MessageCalls(services, ids, self._defaults(), self.settings.max_payload)

    def _defaults(self) -> Defaults:
        from zq.doors.queue_ti.http.calls import Defaults

        own = self.own
        return Defaults(
            own.queue_ti_max_retries,
            own.queue_ti_dlq_threshold,
            own.queue_ti_message_ttl,
            self.settings.default_retry_limit,
            own.queue_ti_require_topic_registration,
        )


DOORS = QueueTiDoors


async def _open_auth(files: AuthFiles, services: Services) -> DoorAuth:
    """Make what knows users, and the first administrator."""
    from zq.doors.queue_ti.http.access import Access, LoginLimit, Tokens
    from zq.doors.queue_ti.http.users import DoorAuth
    from zq.doors.queue_ti.service import Users

    if files.admin is not None:
        await services[Users].ensure_first(*files.admin)
    elif not await services[Users].every():
        raise ConfigError(
            "--queue-ti-auth: nobody could log in, for there are no users: give --queue-ti-admin"
            " FILE with name:password of the first one"
        )
    tokens = Tokens(files.secret, services.clock)
    return DoorAuth(Access(services[Users], tokens, LoginLimit(services.clock)), tokens)
