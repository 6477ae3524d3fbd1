"""The composition root: the parts of a server, the order of their start, and the stop."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections import Counter
from pathlib import Path
from random import Random

from zq import keyfile, logs
from zq.config import Settings
from zq.engine.aside import AsideLane
from zq.engine.engine import Engine
from zq.engine.process import LagMeter, trim_heap
from zq.entrance import Entrance, ListeningPlace
from zq.http.api.door import NativeRoutes, ZizqDoor
from zq.http.api.parts import ApiParts
from zq.http.app import Application
from zq.http.bulk_line import BulkLine
from zq.http.cross_origin import CrossOrigin
from zq.http.door import Door, Later, Route
from zq.http.reading import BODIES, MEMORY, MODULES, RequestBodies
from zq.http.room_doors import RoomDoors
from zq.http.transport.addresses import ListenerAddresses
from zq.http.transport.answer import Responder
from zq.http.transport.answers import Answers
from zq.http.transport.h2.codec import MakeCodec, codec_by
from zq.http.transport.heartbeats import HeartbeatTimer
from zq.http.transport.ports import AddressInUse
from zq.http.transport.turns import LoopTurns
from zq.instance import Instance, server_name
from zq.model.clock import Clock
from zq.model.keys import InvalidKey
from zq.rooms import parts
from zq.service.services import Services

log = logging.getLogger("zq.serve")

CLOSE_TIMEOUT_S = 1.0
"""Requests under way may take this long after the drain."""


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
        """`passed` is a socket that listens already. It replaces the settings' host and port."""
        self._settings = settings
        self._core = Instance(settings, clock=clock, rng=rng)
        self._clock = self._core.clock
        self._refused: Counter[str] = Counter()
        turns = LoopTurns()
        self._primary = Entrance(
            ListeningPlace.primary(settings), settings, self._clock, self._refused, turns, passed
        )
        self._admin: Entrance | None = None
        self._listeners = ListenerAddresses(lambda: self.url, lambda: self.admin_url)
        rooms: list[type[RoomDoors]] = parts("opening", "DOORS", type)
        self._rooms = [room(settings) for room in rooms]
        self._lag: LagMeter | None = None
        self._aside: AsideLane | None = None
        self._bodies: RequestBodies | None = None
        if not settings.no_admin:
            self._admin = Entrance(
                ListeningPlace.admin(settings), settings, self._clock, self._refused, turns
            )

    @property
    def engine(self) -> Engine:
        """The engine, once the server has started."""
        return self._core.engine

    @property
    def services(self) -> Services:
        """The services, once the server has started."""
        return self._core.services

    @property
    def url(self) -> str:
        """The address on which it listens."""
        return self._primary.url

    @property
    def port(self) -> int:
        """The port that it listens on."""
        return self._primary.port

    @property
    def ports(self) -> dict[str, int]:
        """The ports of the listeners that rooms have, by their protocols."""
        return {name: port for room in self._rooms for name, port in room.ports.items()}

    @property
    def places(self) -> dict[str, str]:
        """Addresses for people, such as that of the operators' page, by their names."""
        return {name: url for room in self._rooms for name, url in room.places.items()}

    @property
    def descriptors(self) -> int:
        """How many descriptors the listeners of rooms may need."""
        return sum(room.descriptors for room in self._rooms)

    @property
    def admin_url(self) -> str | None:
        """The address of its admin listener, if it has one."""
        return None if self._admin is None else self._admin.url

    @property
    def entrances(self) -> list[Entrance]:
        """The open entrances, the primary one first."""
        return [self._primary, *([self._admin] if self._admin is not None else [])]

    async def start(self) -> None:
        """Recover the data, then accept requests. If this fails, nothing stays open."""
        settings = self._settings
        keys = None if settings.keys is None else keyfile.read(settings.keys)
        for entrance in self.entrances:
            urls = (room.public_url(entrance.name) for room in self._rooms)
            await entrance.prepare(keys, next(filter(None, urls), None))
        make_codec = codec_by(settings.http2_engine)
        for room in self._rooms:
            room.prepare()
        await self._core.start()
        self.services.store.when_rested = trim_heap
        try:
            await self._listen(make_codec)
        except BaseException:
            await self._close()
            raise
        if self._core.returned:
            fields = {"jobs": self._core.returned}
            log.info("jobs in flight at the last stop are ready again", extra={"fields": fields})

    async def _listen(self, make_codec: MakeCodec) -> None:
        """Put the doors together over the running engine, and open the listeners."""
        settings = self._settings
        self._aside = AsideLane(self._clock, MEMORY + BODIES * settings.max_body, MODULES)
        bodies = self._bodies = RequestBodies(
            *(settings.max_body, settings.max_inbox_bytes, settings.body_timeout / 1000),
            self._clock,
            aside=self._aside,
            turns=self.engine.turns,
            max_values=settings.max_values,
        )
        answers = Answers(
            self._clock,
            trim_heap,
            max_bytes=settings.max_answer_bytes,
            timeout=settings.answer_timeout / 1000,
        )
        self._lag = LagMeter()
        heartbeats = HeartbeatTimer(
            self._clock,
            heartbeat=settings.heartbeat_interval / 1000,
            stall_timeout=settings.stall_timeout / 1000,
        )
        door = self._primary
        given = ApiParts(
            settings=settings,
            server_name=server_name(settings),
            services=self.services,
            guard=door.guard,
            gate=door.gate,
            tls=door.tls,
            bodies=bodies,
            line=BulkLine(self.engine.inbox, self._clock),
            answers=answers,
            heartbeats=heartbeats,
            addresses=self._listeners,
            refused=self._refused,
            lag=self._lag,
            dropped_lines=logs.dropped_lines,
        )
        native = NativeRoutes(given)
        for room in self._rooms:
            await room.start(given, native)
        await self._open_admin(answers, make_codec)
        routes = [*native.quick, *self._routes_on(door)]
        doors = [ZizqDoor(self.services.ids, routes), *self._doors_on(door)]
        later = [native.later(), *self._later_on(door)]
        app: Responder = Application(doors, door.guard, answers, self._refused, self._over, later)
        if settings.allow_origin:
            app = CrossOrigin(app, settings.allow_origin)
        await door.listen(app, make_codec)

    def _doors_on(self, place: Entrance) -> list[Door]:
        return [door for room in self._rooms for door in room.doors(place.name, place.guard)]

    def _later_on(self, place: Entrance) -> list[Later]:
        return [part for room in self._rooms for part in room.later(place.name, place.guard)]

    def _routes_on(self, place: Entrance) -> list[Route]:
        return [route for room in self._rooms for route in room.routes(place.name, place.guard)]

    def _over(self, route: Route, door: Door) -> Route:
        for room in self._rooms:
            route = room.over(route, door)
        return route

    def reload(self) -> None:
        """Read the keys and the certificates again. New certificates are for new connections.

        If one of them is bad, this is logged, and the old one stays in use.
        """
        entrances = self.entrances
        if self._settings.keys is not None:
            self._reload_keys(self._settings.keys)
        elif not any(entrance.has_certificates for entrance in entrances):
            log.info("nothing to reload: there are no keys and no certificates")
        for entrance in entrances:
            entrance.reload_certificates()

    def _reload_keys(self, file: Path) -> None:
        try:
            keys = keyfile.read(file)
        except InvalidKey as error:
            log.error(f"the keys stay as they are: {error}")
            return
        for entrance in self.entrances:
            entrance.guard.change_keys(keys)
        log.info("keys reloaded")

    async def drain(self) -> None:
        """Deliver no more jobs. Accept acknowledgements until no job is held or the time is up."""
        self.engine.streams.stop()
        if not self._settings.drain:
            return
        held = asyncio.Event()
        timer = self._clock.call_later(self._settings.drain / 1000, held.set)
        self.engine.streams.when_empty(held.set)
        await held.wait()
        timer.cancel()

    async def stop(self, *, drain: bool = True) -> None:
        """Drain, end the streams, return their jobs, commit, checkpoint, close."""
        failed = self.engine.failure.done()
        if drain and not failed:
            await self.drain()
        self.engine.let_go()
        await self._close()

    async def _open_admin(self, answers: Answers, make_codec: MakeCodec) -> None:
        """Open the admin listener.

        If another program, such as a second server on this machine, has the default port, this
        server does without it: the queue is worth more than a view of it.
        """
        if self._admin is None:
            return
        guard, doors = self._admin.guard, self._doors_on(self._admin)
        if not doors:
            self._admin = None
            return
        doors[0].routes = [*doors[0].routes, *self._routes_on(self._admin)]
        try:
            later = self._later_on(self._admin)
            app = Application(doors, guard, answers, self._refused, self._over, later)
            await self._admin.listen(app, make_codec)
        except AddressInUse as error:
            if self._settings.admin_port is not None:
                raise
            self._admin = None
            log.warning(f"there is no admin listener (--no-admin says so too): {error}")

    async def _close(self) -> None:
        doors = [entrance.stop(CLOSE_TIMEOUT_S) for entrance in self.entrances]
        doors += [room.stop(CLOSE_TIMEOUT_S) for room in self._rooms]
        await asyncio.gather(*doors)
        if self._lag is not None:
            self._lag.stop()
        if self._aside is not None:
            await self._aside.close()
        await self._core.stop()
