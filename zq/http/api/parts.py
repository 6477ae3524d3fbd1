"""The parts of one running server, of which its APIs and doors are made."""

from __future__ import annotations

import ssl
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, Protocol

from zq.config import Settings
from zq.engine.process import LagMeter
from zq.http.api.endpoints import BodyEndpoints
from zq.http.api.packing import Packer
from zq.http.bulk_line import BulkLine
from zq.http.door import Route
from zq.http.guard import Guard
from zq.http.reading import RequestBodies
from zq.http.transport.addresses import ListenerAddresses
from zq.http.transport.answers import Answers
from zq.http.transport.gate import Gate
from zq.http.transport.heartbeats import HeartbeatTimer
from zq.service.services import Services
from zq.wire.bodies import Limits


@dataclass(frozen=True, kw_only=True)
class ApiParts:
    """The parts of a server from which every API and every door is made. Each takes those that it
    needs."""

    settings: Settings
    server_name: str
    services: Services
    guard: Guard
    """The guard of the primary listener."""
    gate: Gate
    """The gate of the primary listener. Further listeners may lie within it."""
    tls: ssl.SSLContext | None
    """The TLS of the primary listener, if it speaks that. Further listeners may use it too."""
    bodies: RequestBodies
    line: BulkLine
    answers: Answers
    heartbeats: HeartbeatTimer
    addresses: ListenerAddresses
    refused: Counter[str]
    """How many requests and connections were refused, by the code of the error."""
    lag: LagMeter
    dropped_lines: Callable[[], int]
    """How many lines of the log were dropped."""

    @cached_property
    def endpoints(self) -> BodyEndpoints:
        """A maker of endpoints that read a body."""
        return BodyEndpoints(self.bodies, self.line)

    @cached_property
    def packer(self) -> Packer:
        """A maker of large answers in slices."""
        return Packer(self.services.turns)

    @cached_property
    def limits(self) -> Limits:
        """How much a body may bring."""
        settings = self.settings
        return Limits(settings.max_body, settings.max_payload, settings.max_bulk_items)


class Api(Protocol):
    """Some endpoints of the native API. It is made of `ApiParts`."""

    def routes(self) -> list[Route]:
        """Method, path, handler and scope of each endpoint."""


class _Nothing:
    """Stands for each part of a server that does not run."""

    def __getattr__(self, name: str) -> _Nothing:
        return self

    def __getitem__(self, kind: object) -> _Nothing:
        return self

    def __call__(self, *given: object, **named: object) -> _Nothing:
        return self


def no_server() -> ApiParts:
    """Parts of which routes can be made that nobody will ask, such as those of a description."""
    given: dict[str, Any] = {field.name: _Nothing() for field in fields(ApiParts)}
    return ApiParts(**{**given, "settings": Settings()})
