"""The doors besides Zizq's, as the settings have them."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Sequence
from ssl import SSLContext
from typing import TYPE_CHECKING, NamedTuple

from zq.config import Settings
from zq.doors.queue_ti.http.auth.access import Access
from zq.doors.queue_ti.http.auth.api import DoorAuth
from zq.doors.queue_ti.http.auth.limit import LoginLimit
from zq.doors.queue_ti.http.auth.setup import read_admin, read_secret, require_auth
from zq.doors.queue_ti.http.auth.tokens import Tokens
from zq.doors.queue_ti.http.calls import Defaults, MessageCalls
from zq.doors.queue_ti.http.door import QueueTiDoor, queue_ti_routes
from zq.doors.queue_ti.http.ids import UuidIds
from zq.doors.queue_ti.http.metrics import QUEUE_TI_METRICS
from zq.doors.topics.http.door import TopicsDoor, topics_routes
from zq.http.bulk_line import BulkLine
from zq.http.door import Door
from zq.http.guard import Guard
from zq.http.reading import RequestBodies
from zq.http.transport.answers import Answers
from zq.http.transport.gate import Gate
from zq.http.transport.heartbeats import HeartbeatTimer
from zq.operators.ops.http.metrics.table import Metric
from zq.services import Services
from zq.setting import ConfigError

if TYPE_CHECKING:
    from zq.doors.queue_ti.http.rpc.server import RpcServer

log = logging.getLogger("zq.serve")


SharedParts = tuple[Services, Guard, RequestBodies, BulkLine, Answers]
"""What every door is given."""


def other_doors(
    settings: Settings, shared: SharedParts, heartbeats: HeartbeatTimer, auth: DoorAuth | None
) -> list[Door]:
    """The doors in the settings besides Zizq's."""
    doors: list[Door] = []
    services = shared[0]
    if "topics" in settings.doors:
        routes = topics_routes(*shared, heartbeats, gzip=settings.topics_gzip)
        doors.append(TopicsDoor(services.ids, routes))
    if "queue-ti" in settings.doors:
        calls = _calls(settings, services)
        routes = queue_ti_routes(*shared, calls, _defaults(settings), auth)
        doors.append(QueueTiDoor(UuidIds(services.ids), routes))
    return doors


class AuthFiles(NamedTuple):
    """What the files of the settings say about users."""

    secret: bytes
    admin: tuple[str, str] | None
    """Name and password of the first administrator."""


def read_auth(settings: Settings) -> AuthFiles | None:
    """The files about users, if there are users. Raises `InvalidKey` or `LibraryMissing`."""
    if not settings.queue_ti_auth:
        return None
    require_auth()
    if settings.keys is None and settings.tls_client_ca is None:
        log.warning(
            "--queue-ti-auth without --keys: users are asked for below /api alone, and everyone who"
            " reaches this server may do everything by the native API: give --keys FILE"
        )
    admin = None if settings.queue_ti_admin is None else read_admin(settings.queue_ti_admin)
    return AuthFiles(read_secret(settings.queue_ti_secret), admin)


async def open_auth(files: AuthFiles | None, services: Services) -> DoorAuth | None:
    """Make what knows users, and the first administrator. Raises ConfigError if nobody is there."""
    if files is None:
        return None
    if files.admin is not None:
        await services.users.ensure_first(*files.admin)
    elif not await services.users.every():
        raise ConfigError(
            "--queue-ti-auth: nobody could log in, for there are no users: give --queue-ti-admin"
            " FILE with name:password of the first one"
        )
    tokens = Tokens(files.secret, services.clock)
    return DoorAuth(Access(services.users, tokens, LoginLimit(services.clock)), tokens)


def other_metrics(settings: Settings) -> Sequence[Metric]:
    """The metrics of queue-ti, if its door is open."""
    return QUEUE_TI_METRICS if "queue-ti" in settings.doors else ()


def grpc_listener(
    settings: Settings,
    shared: SharedParts,
    refused: Counter[str],
    auth: DoorAuth | None,
    gate: Gate,
    tls: SSLContext | None,
) -> RpcServer | None:
    """The listener of gRPC, where the settings have one. Its library is an extra."""
    if settings.grpc_port is None:
        return None
    from zq.doors.queue_ti.http.rpc.links import RpcLinks
    from zq.doors.queue_ti.http.rpc.server import RpcPlace, RpcServer
    from zq.doors.queue_ti.http.rpc.service import QueueService, RpcOptions

    links = RpcLinks()
    services, guard, _, _, answers = shared
    options = RpcOptions(
        *(guard, None if auth is None else auth.access, answers, refused),
        *(settings.max_streams_per_peer, settings.grpc_window),
    )
    place = RpcPlace(
        *(settings.host, settings.grpc_port, tls),
        *(settings.max_body, settings.max_connections, settings.header_timeout),
    )
    service = QueueService(_calls(settings, services), links, options)
    return RpcServer(service, links, place, gate, services.clock)


def _calls(settings: Settings, services: Services) -> MessageCalls:
    ids = UuidIds(services.ids)
    return MessageCalls(services, ids, _defaults(settings), settings.max_payload)


def _defaults(settings: Settings) -> Defaults:
    return Defaults(
        settings.queue_ti_max_retries,
        settings.queue_ti_dlq_threshold,
        settings.queue_ti_message_ttl,
        settings.default_retry_limit,
        settings.queue_ti_require_topic_registration,
    )
