"""The calls that REST and gRPC have in common: new messages, claims, and settlements.

Both translate what they read into values of this module, and its answers into what they write.
"""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import NamedTuple

import msgspec

from zq.doors.queue_ti.http.documents import DLQ, MessageDocument, message
from zq.doors.queue_ti.http.topics import AT, queue_of, topic_behind, topic_of
from zq.doors.queue_ti.model import Permit
from zq.engine.delivery.takers import Claimer
from zq.engine.delivery.windows import ClaimWindow
from zq.http.door import Ids
from zq.model.errors import InvalidRequest, JobNotFound, NotInFlight, PayloadTooLarge, TooLarge
from zq.model.job import MAX_META, MAX_UINT32, Extras, JobRecord, NewJob
from zq.model.leasing import MOST_CLAIMED, Terms
from zq.model.names import check_key, check_name
from zq.model.reach import Reach
from zq.model.settings import QueueSettings
from zq.model.settling import Failure, bounded
from zq.model.unique import KeySpace, OnConflict, Scope
from zq.service.services import Services

TYPE = "queue-ti"
"""The type of the jobs that are messages."""

LONG_MS = 3_600_000
"""How long a claim waits that waits for the next message. Then it is made again."""


class Defaults(NamedTuple):
    """The settings of topics without overrides; times in milliseconds. 0 means none of a thing."""

    max_retries: int
    dlq_threshold: int
    ttl_ms: int
    native_limit: int
    """The retry limit of jobs that came by another door."""
    registered_only: bool = False
    """True if topics need overrides, or settings, before they get messages."""

    def of(self, topic: str) -> QueueSettings:
        """The settings of a topic's queue by the defaults of the door."""
        return QueueSettings(
            retry_limit=max(self.max_retries, 1) - 1,
            dead_letter=check_name("topic", topic + DLQ),
            dead_letter_after=self.dlq_threshold,
            ttl_ms=self.ttl_ms,
        )


class NewMessage(NamedTuple):
    """A message to store. Its payload is JSON text."""

    topic: str
    payload: bytes
    metadata: dict[str, str] | None
    key: str | None


class MessagesWanted(NamedTuple):
    """A dequeue request. `seconds` is its visibility time-out, if it names one."""

    topic: str
    most: int
    seconds: int | None
    group: str | None


class MessageCalls:
    """Messages in and out, and their settlement."""

    def __init__(self, services: Services, ids: Ids, defaults: Defaults, max_payload: int) -> None:
        self._jobs, self._work, self._listing = services.jobs, services.work, services.listing
        self._queues, self._tallies = services.queues, services.tallies
        self.ids = ids
        self._defaults = defaults
        self._max_payload = max_payload

    @property
    def has_stopped(self) -> bool:
        """True if no more messages are delivered, for the server is stopping."""
        return self._work.has_stopped

    async def enqueue(self, new: NewMessage, reach: Reach) -> str:
        """Store a message, or give its content to the pending one with its key. Its id."""
        if new.topic.endswith(DLQ):
            raise InvalidRequest(f"topic name may not end in {DLQ}: messages come there by nacks")
        self._tallies.begin()
        job = self._job(new)
        defaults = self._defaults.of(await topic_behind(new.topic, self._queues))
        registered_only = self._defaults.registered_only
        stored = await self._jobs.enqueue(
            [job], reach, defaults=defaults, registered_only=registered_only
        )
        return self.ids.text(stored.reply.joined.get(0, stored.keys[0]))

    def claimer(
        self, wanted: MessagesWanted, reach: Reach, window: ClaimWindow | None = None
    ) -> AbstractContextManager[Claimer]:
        """A claimer of messages. It answers at once or, with a window, when there are some."""
        queue = queue_of(wanted.topic, wanted.group)
        if not 1 <= wanted.most <= MOST_CLAIMED:
            raise InvalidRequest(f"count must be between 1 and {MOST_CLAIMED}")
        self._tallies.begin()
        terms = Terms(_lease(wanted.seconds), TYPE)
        wait_ms = 0 if window is None else LONG_MS
        return self._work.claimer(queue, reach, wanted.most, terms, wait_ms, window)

    async def readable(self, jobs: Sequence[JobRecord]) -> list[JobRecord]:
        """Claimed jobs with their payloads."""
        return await self._work.large_payloads(jobs)

    async def documents(
        self, jobs: Sequence[JobRecord], topic: str | None = None
    ) -> list[MessageDocument]:
        """Jobs as messages, of their queues or of a topic whose group has them."""
        found = await self._listing.last_errors(jobs)
        errors = {key: error.message for key, error in found.items()}
        limit = self._defaults.native_limit
        return [
            message(
                job,
                self.ids,
                limit,
                errors.get(job.key, ""),
                topic or job.queue,
            )
            for job in jobs
        ]

    async def ack(self, id: str, group: str | None, reach: Reach) -> None:
        """Say that a message is done: it is gone. Its time-out may be over, unless it was taken."""
        await self._require_group(id, group, reach)
        refused = await self._work.succeed([self.key(id)], reach, late=TYPE)
        if refused.missing:
            raise NotInFlight

    async def nack(self, id: str, error: str, group: str | None, reach: Reach) -> None:
        """Say that a message failed: it is pending again, in its dead-letter topic, or failed."""
        await self._require_group(id, group, reach)
        failure = bounded(Failure(error, at_once=True))
        await self._work.fail(self.key(id), failure, reach, late=TYPE)

    async def require_settling(
        self, id: str, group: str | None, reach: Reach, permit: Permit
    ) -> None:
        """Raise `GrantMissing` unless a caller may settle a message, or `JobNotFound`."""
        if not permit.is_admin:
            job = await self._jobs.get(self.key(id), reach)
            await self.require_consuming(topic_of(job.queue, group) or job.queue, group, permit)

    async def require_consuming(self, topic: str, group: str | None, permit: Permit) -> None:
        """Raise `GrantMissing` unless a caller may consume a topic, for a group if one is named.

        The queue of a group is one of its topic: it cannot be consumed under its own name instead.
        """
        if not (group or permit.is_admin):
            behind = await topic_behind(topic, self._queues)
            group = topic.removeprefix(behind).removeprefix(AT)
            topic = behind
        permit.require_consuming(topic, group)

    def key(self, id: str) -> int:
        """The key of a message. Raises `JobNotFound` for what can be no id."""
        key = self.ids.key(id)
        if key is None:
            raise JobNotFound
        return key

    async def _require_group(self, id: str, group: str | None, reach: Reach) -> None:
        """Raise `NotInFlight` if a message is not one of the group that a request names."""
        if group:
            job = await self._jobs.get(self.key(id), reach)
            if topic_of(job.queue, group) is None:
                raise NotInFlight

    def _job(self, new: NewMessage) -> NewJob:
        if len(new.payload) > self._max_payload:
            raise PayloadTooLarge(len(new.payload), self._max_payload)
        return NewJob(
            check_name("topic", new.topic),
            TYPE,
            new.payload.decode(),
            len(new.payload),
            unique_key=None if new.key is None else check_key(new.key),
            unique_while=None if new.key is None else Scope.QUEUED,
            unique_in=KeySpace.ALL if new.key is None else KeySpace.QUEUE,
            on_conflict=OnConflict.REPLACE_CONTENT,
            extras=None if new.metadata is None else Extras(meta=_meta(new.metadata)),
        )


def _meta(metadata: dict[str, str]) -> str:
    text = msgspec.json.encode(metadata)
    if len(text) > MAX_META:
        raise TooLarge(
            f"metadata has {len(text)} bytes, but at most {MAX_META} are allowed: put large data"
            " into the payload"
        )
    if any("\0" in part for pair in metadata.items() for part in pair):
        raise InvalidRequest("metadata must not contain NUL")
    return text.decode()


def _lease(seconds: int | None) -> int | None:
    """How long the taker asks for; None leaves it to the job, its queue, or the engine."""
    return min(seconds * 1000, MAX_UINT32) if seconds is not None and seconds > 0 else None
