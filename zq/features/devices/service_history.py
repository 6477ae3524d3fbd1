"""The history of devices comes here, so that whoever reads this server reads them all."""

from collections.abc import Sequence
from typing import Self

from zq.engine.inbox import Inbox
from zq.features.devices.commands import AppendHistory
from zq.features.devices.errors import DeviceOutOfReach, DeviceTaken, HistoryNotKept
from zq.features.devices.model import speaks_for
from zq.features.devices.service import Devices
from zq.features.history.engine import HistoryReaders
from zq.features.history.model import ForwardedAttempt, StoredAttempt
from zq.features.producers.model import EpochEnd, ProducerMark, check_mark
from zq.features.producers.store import ProducerReads
from zq.model.errors import InvalidRequest
from zq.model.ids import SUFFIX_LENGTH, key_of_any
from zq.model.keys import Key
from zq.model.reach import Reach
from zq.service.services import Services


def producer_of(device: str) -> str:
    """The name under which the numbers of a device's history are remembered."""
    return f"{device}/history"


class DeviceHistory:
    """Takes the history of devices."""

    @classmethod
    def of(cls, services: Services) -> Self:
        """The history of the devices of a server."""
        engine = services.engine
        reads = services.store.reads.of(ProducerReads)
        return cls(services[Devices], engine.inbox, reads, engine[HistoryReaders])

    def __init__(
        self, devices: Devices, inbox: Inbox, reads: ProducerReads, readers: HistoryReaders
    ) -> None:
        self._devices = devices
        self._inbox = inbox
        self._reads = reads
        self._readers = readers

    async def end(self, name: str, instance: str, key: Key | None) -> EpochEnd | None:
        """The last record that is here of a device: its epoch and its number.

        Raises `DeviceOutOfReach`, `DeviceNotFound`, `DeviceTaken` or `HistoryNotKept`.
        """
        await self._require(name, instance, key)
        known = await self._reads.producer(producer_of(name))
        return None if known is None else EpochEnd(known.epoch, known.last)

    async def append(
        self,
        name: str,
        instance: str,
        mark: ProducerMark,
        records: Sequence[ForwardedAttempt],
        key: Key | None,
        reach: Reach,
    ) -> EpochEnd:
        """Store the records that are new, of queues within reach. Return the last number that is
        here now.

        Raises the errors of `end`, `InvalidRequest`, `ProducerFenced` or `TooManyProducers`.
        """
        await self._require(name, instance, key)
        rows = [_stored(record) for record in records]
        found = await self._inbox.ask(AppendHistory(name, check_mark(mark), rows, reach))
        return EpochEnd(found.epoch, found.last)

    async def _require(self, name: str, instance: str, key: Key | None) -> None:
        device = (await self._devices.get(name)).device
        if not speaks_for(key, name):
            raise DeviceOutOfReach(name)
        if instance != device.instance:
            raise DeviceTaken(name, device.since, device.reported_at)
        if not self._readers.recording:
            raise HistoryNotKept


def _stored(record: ForwardedAttempt) -> StoredAttempt:
    key = key_of_any(record.job_id)
    if key is None:
        raise InvalidRequest(f"job_id: {record.job_id[:40]!r} is no id of a job")
    return StoredAttempt(
        key,
        record.queue,
        record.type,
        record.attempt,
        record.ready_at,
        record.dequeued_at,
        record.worker,
        record.payload_bytes,
        record.priority,
        record.outcome,
        record.error_type,
        record.error_message,
        record.finished_at,
        record.job_id[-SUFFIX_LENGTH:],
    )
