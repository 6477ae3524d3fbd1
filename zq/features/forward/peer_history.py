"""Sends the history of this device to a hub that keeps one, each record once.

The numbers of the records are those of the history itself, so nothing is stored here about what was
sent: the hub says what its last record is. A database that was restored from a backup has another
epoch. It remembers where the one before ended, and goes on behind what the hub has of that.
"""

import asyncio
import logging

import msgspec
from msgspec.structs import asdict

from zq.client.http.aio import AioTransport
from zq.client.http.backend import HttpBackend
from zq.client.http.transport import Request
from zq.engine.turns import end_task
from zq.features.devices.client import HistoryBody, ServerDevices, history_path
from zq.features.devices.model import MOST_RECORDS
from zq.features.forward.peer_hub import GZIP, TIMEOUT_S, address_of, gzipped, refuse
from zq.features.forward.peer_link import HubLink, Pause
from zq.features.forward.service import HistoryEpochs
from zq.features.history.model import ForwardedAttempt, HistoryRecord
from zq.features.history.service import History
from zq.features.producers.model import MAX_SEQ, EpochEnd
from zq.model.errors import RecordsGone, ZqError
from zq.service.services import Services
from zq.store.errors import StoreError

log = logging.getLogger("zq.forward")

GATHER_S = 60.0
"""Records wait so long for others. A request for each would cost more than the record."""

WAIT_MS = 60_000

_encode = msgspec.json.Encoder().encode


class HistorySender:
    """Sends to one hub until it is stopped."""

    def __init__(self, services: Services, link: HubLink) -> None:
        self._link = link
        self._epochs = services[HistoryEpochs]
        self._history = services[History]
        self._clock = services.clock
        self._pause = Pause()
        self._after: EpochEnd | None = None
        """The end of another epoch, which the hub is in."""
        self._task: asyncio.Task[None] | None = None

    async def restart(self) -> None:
        """Begin, and ask the hub again what it has."""
        await self.stop()
        self._task = asyncio.create_task(self._run(), name="zq-history-sender")

    async def stop(self) -> None:
        await end_task(self._task)

    def hurry(self) -> None:
        """Send what there is, and end a pause after an error."""
        self._pause.end()

    async def _run(self) -> None:
        failures = 0
        while True:
            transport: AioTransport | None = None
            sent = self._link.progress.records
            try:
                address = address_of(self._link.rule)
                transport = AioTransport(address)
                last = await self._position(ServerDevices(HttpBackend(address, transport).ask))
                while True:
                    last = await self._send(transport, last)
            except (ZqError, StoreError) as error:
                failures = 0 if self._link.progress.records > sent else failures + 1
                log.info(f"the history is not sent: {error}")
                await self._pause.rest(error, failures)
            except Exception as error:
                log.error("the history is not sent, which is tried again", exc_info=error)
                failures += 1
                await self._pause.rest(error, failures)
            finally:
                if transport is not None:
                    await transport.close()

    async def _position(self, devices: ServerDevices) -> int | None:
        """The last record that the hub has; None to begin with the oldest that is kept."""
        body = HistoryBody(self._link.instance)
        there = await devices.append_history(self._link.device, body)
        is_other = there.epoch not in (None, self._epochs.present)
        self._after = EpochEnd(there.epoch, there.last) if is_other and there.epoch else None
        return None if there.epoch is None else self._epochs.behind(there.epoch, there.last)

    async def _send(self, transport: AioTransport, last: int | None) -> int | None:
        """Send the next records, or wait for some. Return the last number that the hub has."""
        try:
            found = await self._history.page(last, MAX_SEQ, MOST_RECORDS, WAIT_MS)
            if found.records and len(found.records) < MOST_RECORDS:
                await self._gather()
                found = await self._history.page(last, MAX_SEQ, MOST_RECORDS, 0)
        except RecordsGone as gone:
            log.warning(
                f"records of the history before {gone.min_seq} are lost before they were sent"
            )
            return gone.min_seq - 1
        if not found.records:
            return last
        body = await self._body(found.records)
        path = history_path(self._link.device)
        request = Request("POST", path, body, TIMEOUT_S, safe=True, fields=GZIP)
        reply = await transport.send(request)
        if reply.status >= 300:
            refuse(reply)
        self._after = None
        self._link.progress.records += len(found.records)
        return found.records[-1].seq

    async def _gather(self) -> None:
        """Give further records time to come."""
        self._pause.clear()
        timer = self._clock.call_later(GATHER_S, self._pause.end)
        try:
            await self._pause.over()
        finally:
            timer.cancel()

    async def _body(self, records: list[HistoryRecord]) -> bytes:
        after = None if self._after is None else f"{self._after.epoch}:{self._after.last}"
        attempts = [_attempt(record) for record in records]
        first = records[0].seq
        body = HistoryBody(self._link.instance, self._epochs.present, first, after, attempts)
        return await gzipped(_encode(body))


def _attempt(record: HistoryRecord) -> ForwardedAttempt:
    said = asdict(record)
    return ForwardedAttempt(**{name: said[name] for name in ForwardedAttempt.__struct_fields__})
