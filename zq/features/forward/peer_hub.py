"""The server at the other end of a lane, to which the lane is a producer.

Reports are seldom: the first one after a quiet time follows its change within a minute, and each
one more waits twice as long as the one before.
"""

import asyncio
import logging
import zlib
from pathlib import Path
from typing import NamedTuple, NoReturn

import msgspec

from zq.client.errors import BackendError, InvalidOption
from zq.client.http.address import Address, Tls
from zq.client.http.aio import AioTransport
from zq.client.http.backend import HttpBackend
from zq.client.http.transport import Reply, Request
from zq.engine.turns import end_task
from zq.features.devices.client import ServerDevices
from zq.features.devices.model import USUAL_EVERY_MS
from zq.features.forward.model import HubIsBuffered, LaneRule
from zq.features.forward.peer_presence import Presence
from zq.features.producers.model import MAX_SEQ, EpochEnd
from zq.features.producers.wire import ProducerBody
from zq.model.clock import Clock
from zq.model.errors import ZqError
from zq.store.errors import StoreError

TIMEOUT_S = 60.0

PART = 64 * 1024
"""How many bytes are compressed in one go: in about a millisecond."""

MINIMAL = "Prefer: return=minimal\r\n"
GZIP = "Content-Encoding: gzip\r\n"

_LEVEL = 6
"""The level of gzip. Level 1 takes half the time, and a sixth more bytes."""

_GZIP_BITS = 31
"""The number by which zlib names the form of gzip."""


class HubEnd(NamedTuple):
    """Where a hub stands: the epoch of the producer and its last number, and that of the epoch that
    was asked for. It is None if the hub knows nothing of that one."""

    now: EpochEnd
    asked: int | None


class PackedJobs(NamedTuple):
    """The body of a request as it goes over the wire, with the fields of its header."""

    body: bytes
    fields: str


class Hub:
    """Sends requests as one producer. A refusal is raised, with the `retry_after` of the answer."""

    def __init__(self, rule: LaneRule, producer: str, *, compresses: bool) -> None:
        """Raises `InvalidOption`."""
        address = address_of(rule)
        self._transport = AioTransport(address)
        self._devices = ServerDevices(HttpBackend(address, self._transport).ask)
        self._producer = producer
        self._rule = rule
        self._compresses = compresses
        self.sent_bytes = 0
        """The bytes of all bodies so far."""

    async def close(self) -> None:
        await self._transport.close()

    async def check(self) -> None:
        """Raise `HubIsBuffered` if a power cut could take from the hub what it has acknowledged."""
        reply = await self._ask(Request("GET", "/health", None, TIMEOUT_S))
        try:
            mode = msgspec.json.decode(reply.body, type=_Health).enqueue_commit_mode
        except msgspec.MsgspecError:
            raise BackendError(f"{self._rule.url} does not answer like a zq server") from None
        if mode != "fsync" and not self._rule.buffered:
            raise HubIsBuffered(str(self._rule.url))

    async def meet(self, presence: Presence) -> None:
        """Tell the hub of this device. Raises an error with `device_taken` if it knows another one.

        A hub that knows no devices, or no key of this one, goes without.
        """
        try:
            await presence.tell(self._devices, str(self._rule.url))
        except BackendError as error:
            if error.status not in (403, 404, 405):
                raise

    async def end(self, epoch: str) -> HubEnd:
        """Where the hub stands. A producer that it does not know is in this epoch, with 0.

        An empty request of the last number that there is asks for it, so a key that may enqueue is
        enough.
        """
        try:
            await self._empty(ProducerBody(self._producer, epoch, MAX_SEQ))
        except BackendError as error:
            said = error.details
            if error.code == "sequence_gap":
                last = int(str(said["expected"])) - 1
                return HubEnd(EpochEnd(epoch, last), last)
            if error.code != "producer_fenced":
                raise
            ended = said.get("ended")
            end = EpochEnd(str(said["epoch"]), int(str(said["last"])))
            return HubEnd(end, ended if isinstance(ended, int) else None)
        return HubEnd(EpochEnd(epoch, MAX_SEQ), MAX_SEQ)

    async def take_over(self, epoch: str, after: EpochEnd) -> None:
        """Begin an epoch after the end of another one. Raises an error with `producer_fenced`."""
        end = f"{after.epoch}:{after.last}"
        await self._empty(ProducerBody(self._producer, epoch, 1, end))

    async def packed(self, epoch: str, first: int, jobs: bytes) -> PackedJobs:
        """A request for jobs, which are the items of a list in JSON."""
        body = self._body(ProducerBody(self._producer, epoch, first), jobs)
        if not self._compresses:
            return PackedJobs(body, MINIMAL)
        return PackedJobs(await gzipped(body), MINIMAL + GZIP)

    async def store(self, packed: PackedJobs) -> None:
        """Have jobs stored, all or none."""
        self.sent_bytes += len(packed.body)
        await self._ask(
            Request("POST", "/jobs/bulk", packed.body, TIMEOUT_S, safe=True, fields=packed.fields)
        )

    async def _empty(self, producer: ProducerBody) -> None:
        body = self._body(producer, b"")
        await self._ask(Request("POST", "/jobs/bulk", body, TIMEOUT_S, safe=True, fields=MINIMAL))

    def _body(self, producer: ProducerBody, jobs: bytes) -> bytes:
        return b'{"producer":%b,"jobs":[%b]}' % (msgspec.json.encode(producer), jobs)

    async def _ask(self, request: Request) -> Reply:
        reply = await self._transport.send(request)
        if reply.status >= 300:
            refuse(reply)
        return reply


def address_of(rule: LaneRule) -> Address:
    """The address of a rule's hub, with its key as the file has it now. Raises `InvalidOption`."""
    assert rule.url is not None
    tls = Tls(rule.ca, rule.client_cert, rule.client_key)
    return Address(rule.url, _token_of(rule), tls=tls)


async def gzipped(body: bytes) -> bytes:
    """A body that is compressed, part by part."""
    encoder = zlib.compressobj(_LEVEL, wbits=_GZIP_BITS)
    parts: list[bytes] = []
    for start in range(0, len(body), PART):
        if start:
            await asyncio.sleep(0)
        parts.append(encoder.compress(body[start : start + PART]))
    return b"".join([*parts, encoder.flush()])


def retry_after(error: ZqError) -> float:
    """The seconds after which a request may be sent again, as far as the answer has said so."""
    seconds = error.details.get("retry_after")
    return seconds if isinstance(seconds, float) else 0.0


class _Health(msgspec.Struct):
    enqueue_commit_mode: str


def refuse(reply: Reply) -> NoReturn:
    """Raise the error that an answer is, with the time after which it may be asked again."""
    error = reply.error()
    error.details = {**error.details, "retry_after": reply.retry_after}
    raise error


def _token_of(rule: LaneRule) -> str | None:
    if rule.key_file is None:
        return rule.token
    try:
        return Path(rule.key_file).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidOption(f"the key in {rule.key_file} cannot be read: {error}") from error


log = logging.getLogger("zq.forward")

LOOK_S = 60.0
"""The time between two looks for changes."""

LONGEST_S = USUAL_EVERY_MS / 1000


class NewsTeller:
    """Reports changes to one hub until it is stopped."""

    def __init__(self, presence: Presence, rule: LaneRule, clock: Clock) -> None:
        """The rule names the hub, and what this device shows it."""
        self._presence = presence
        self._rule = rule
        self._clock = clock
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name="zq-news")

    async def stop(self) -> None:
        await end_task(self._task)

    async def _run(self) -> None:
        pause, quiet = LOOK_S, 0.0
        while True:
            await self._sleep(pause)
            try:
                told = await self._report_changes()
            except (ZqError, StoreError) as error:
                log.info(f"a hub does not hear what has changed: {error}")
                told = True
            except Exception as error:
                log.error("the look for news has failed and is tried again", exc_info=error)
                told = True
            # What changes to and fro costs the line no more than usual reports do.
            quiet = 0.0 if told else quiet + pause
            if told:
                pause = min(2 * pause, LONGEST_S)
            elif quiet >= LONGEST_S:
                pause = LOOK_S

    async def _report_changes(self) -> bool:
        """Report if something has changed. Return whether it was so."""
        url = str(self._rule.url)
        if not await self._presence.has_news(url):
            return False
        address = address_of(self._rule)
        transport = AioTransport(address)
        try:
            await self._presence.tell(ServerDevices(HttpBackend(address, transport).ask), url)
        finally:
            await transport.close()
        return True

    async def _sleep(self, seconds: float) -> None:
        awake = asyncio.Event()
        timer = self._clock.call_later(seconds, awake.set)
        try:
            await awake.wait()
        finally:
            timer.cancel()
