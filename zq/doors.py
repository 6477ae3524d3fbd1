"""The doors besides Zizq's, as the settings have them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from zq.config import Settings
from zq.engine.news.tallies import QueueTallies
from zq.http.bulk_line import BulkLine
from zq.http.door import Door
from zq.http.guard import Guard
from zq.http.ops.metrics.table import Metric
from zq.http.queue_ti.calls import Defaults, MessageCalls
from zq.http.queue_ti.door import QueueTiDoor, queue_ti_routes
from zq.http.queue_ti.ids import UuidIds
from zq.http.queue_ti.metrics import QUEUE_TI_METRICS
from zq.http.topics.door import TopicsDoor, topics_routes
from zq.http.transport.answers import Answers
from zq.http.transport.bodies import Bodies
from zq.http.transport.heartbeats import HeartbeatTimer
from zq.http.transport.tls import CertificateFiles
from zq.service import Services

if TYPE_CHECKING:
    from zq.http.queue_ti.rpc.server import RpcServer


SharedParts = tuple[Services, Guard, Bodies, BulkLine, Answers]
"""What every door is given."""


def other_doors(settings: Settings, shared: SharedParts, heartbeats: HeartbeatTimer) -> list[Door]:
    """The doors in the settings besides Zizq's."""
    doors: list[Door] = []
    services = shared[0]
    if "topics" in settings.doors:
        routes = topics_routes(*shared, heartbeats, gzip=settings.topics_gzip)
        doors.append(TopicsDoor(services.ids, routes))
    if "queue-ti" in settings.doors:
        calls = _calls(settings, services)
        routes = queue_ti_routes(*shared, calls, _defaults(settings))
        doors.append(QueueTiDoor(UuidIds(services.ids), routes))
    return doors


def other_metrics(settings: Settings, tallies: QueueTallies) -> Sequence[Metric]:
    """The metrics of queue-ti, which are counted only if its door is open."""
    if "queue-ti" not in settings.doors:
        return ()
    tallies.listens = True
    return QUEUE_TI_METRICS


def grpc_listener(
    settings: Settings, shared: SharedParts, refused: Counter[str]
) -> RpcServer | None:
    """The listener of gRPC, where the settings have one. Its library is an extra."""
    if settings.grpc_port is None:
        return None
    from zq.http.queue_ti.rpc.server import RpcPlace, RpcServer
    from zq.http.queue_ti.rpc.service import QueueService, RpcOptions

    services, guard, _, _, answers = shared
    options = RpcOptions(
        *(guard, answers, refused),
        *(settings.max_streams_per_peer, settings.grpc_window),
    )
    cert, key = settings.tls_cert, settings.tls_key
    files = None
    if cert is not None and key is not None:
        files = CertificateFiles(cert, key, settings.tls_client_ca)
    place = RpcPlace(
        *(settings.host, settings.grpc_port, files),
        *(settings.max_body, settings.max_connections),
    )
    return RpcServer(QueueService(_calls(settings, services), options), place)


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
