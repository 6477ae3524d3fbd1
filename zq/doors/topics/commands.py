"""The commands about topics, as those of `zq.model.commands` are about all else."""

from collections.abc import Mapping, Sequence
from typing import ClassVar

import msgspec

from zq.doors.topics.model import NewRecord, TagMatch, TopicConfig, TopicPatch, TopicState
from zq.doors.topics.model_routers import RouterConfig
from zq.features.producers.model import ProducerMark
from zq.model.commands import Command, SyncRule
from zq.model.reach import EVERYWHERE, Reach


class TopicPut(msgspec.Struct, frozen=True):
    """A topic as a `PutTopic` has left it."""

    state: TopicState
    created: bool


class PutTopic(Command[TopicPut], frozen=True):
    """Create a topic, or change what is set for it. `TopicIncompatible` or `TooManyTopics`."""

    name: str
    patch: TopicPatch


class TopicDeleted(msgspec.Struct, frozen=True):
    """True if there was a topic, with the routers that have gone with it."""

    deleted: bool
    routers: list[str] = []


class DeleteTopic(Command[TopicDeleted], frozen=True):
    """Delete a topic and its routers.

    `TopicNotEmpty`, where it may only go `if_empty`. A queue never goes before its jobs.
    """

    name: str
    if_empty: bool = False


class Appended(msgspec.Struct):
    """The result of an `Append`."""

    first_seq: int
    last_seq: int
    head_seq: int
    created: bool = False
    deduped: bool = False
    """True if it was recognised as a write of before, and has written nothing."""
    duplicates: int = 0
    """How many of its first records the producer had sent before. The numbers are of the others.

    Where all are duplicates, the numbers are those of before, if they are known: otherwise none.
    """
    flush_s: float = 0.0
    """How long it has waited for the disk, where its topic asks for that."""


class Append(Command[Appended], frozen=True):
    """Append records, all or none, with numbers that follow each other.

    A topic that is not there is created with `create`, or, where that is None: `TopicNotFound`. It
    also answers `TopicFull` or `TooManyTopics`. A write with the `key` of one before is that one.
    With a `mark`, those records are new that the producer has not sent yet: it also answers
    `SequenceGap`, `ProducerFenced` or `TooManyProducers`.
    The records of a queue become jobs with the `keys`; without these it answers `TopicIsQueue`. If
    a payload would have more than `most_payload` bytes, in any queue, it answers `PayloadTooLarge`.
    """

    brings_more: ClassVar[bool] = True
    comes_last: ClassVar[bool] = True
    sync: ClassVar[SyncRule] = SyncRule.NONE
    items: ClassVar[str | None] = "records"
    has_size: ClassVar[bool] = True

    topic: str
    records: Sequence[NewRecord]
    size: int
    """Bytes of the records, for the bound on a tick."""
    create: TopicConfig | None
    key: str | None = None
    keys: Sequence[int] = ()
    mark: ProducerMark | None = None
    most_payload: int | None = None


class NumberJobs(Command[dict[int, int]], frozen=True):
    """Give jobs of a queue their numbers there, if they have none. Returns all numbers by key.

    `TopicNotFound` or `NotAQueue` where the queue is no topic any more.
    """

    topic: str
    keys: Sequence[int]


class ForgetNumbers(Command[None], frozen=True):
    """Drop the numbers of those of the jobs that are done, also in the same transaction.

    If it is `durable`, the disk has that then.
    """

    keys: Sequence[int]
    durable: bool = False


class LayAside(Command[int], frozen=True):
    """Move jobs that are held to the dead-letter topic of their own one.

    `leases` maps a job to the delivery that goes on; a job of another delivery is left alone.
    `letter` appends what the jobs become, in their order. Returns how many have left the queue:
    they were moved, or are dead where the topic never takes them. An error says why none was moved:
    `TopicNotFound` where their own topic is not there, or what the append answers.
    """

    topic: str
    leases: Mapping[int, int]
    letter: Append


class RecordsDeleted(msgspec.Struct, frozen=True):
    """The result of a `DeleteRecords`, with the topic after it."""

    deleted: int
    upto: int
    """The last record that there was when the first slice of it came."""
    is_done: bool
    state: TopicState


class DeleteRecords(Command[RecordsDeleted], frozen=True):
    """A slice of a deletion: the records that match, up to the last one at its beginning.

    An `upto` of None stands for that. Later slices name the `id` of the topic too, since another
    one may have its name by then. `TopicNotFound` where the topic is not there.
    """

    topic: str
    match: TagMatch | None = None
    before: int | None = None
    upto: int | None = None
    id: int | None = None


class RouterPut(msgspec.Struct, frozen=True):
    """True if a `PutRouter` has brought a new router."""

    created: bool


class PutRouter(Command[RouterPut], frozen=True):
    """Create a router and the topics at its ends, or change it. It copies from now on.

    The errors are `TopicNotFound` if its `dest` is not to be created, `RouterFanIn`, `RouterCycle`,
    `TooManyCopies`, `TooManyRouters`, `TooManyTopics`, and `QueueOutOfReach` if there is one of
    this name whose ends are out of reach.
    """

    name: str
    config: RouterConfig
    reach: Reach = EVERYWHERE


class DeleteRouter(Command[bool], frozen=True):
    """Delete a router, and keep its copies. Returns whether there was one."""

    name: str
    reach: Reach = EVERYWHERE
