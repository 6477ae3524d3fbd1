"""The verbs of cron. A slash in a name is written `%2F` in the path."""

from collections.abc import Iterator, Sequence
from types import NoneType
from typing import Any

import msgspec
from msgspec import UNSET, Raw, UnsetType

from zq.features.budgets.model_jobs import draws_in
from zq.features.budgets.wire import DrawDocument, draw_documents
from zq.features.crons.model import CronEntry, CronGroup, EntryDraft, GroupDraft, GroupPatch
from zq.features.crons.model_expression import CronExpression, zone_named
from zq.model.errors import InvalidRequest
from zq.model.job import (
    NO_EXTRAS,
    NO_OPTIONS,
    BroughtFields,
    DedupeRule,
    NewJob,
    SentFields,
    SettingFields,
)
from zq.model.keys import KeyScope
from zq.model.names import check_name
from zq.model.sharing import values_of
from zq.model.unique import NAMES, KeySpace, OnConflict, Scope
from zq.verbs import UNBUILT, Deleted, Verb
from zq.wire.bodies import JobBody, Limits, check_items, new_job
from zq.wire.codecs import BodyCodec, decode


class _Entry(msgspec.Struct):
    name: str
    expression: str
    job: JobBody
    timezone: str | None = None
    paused: bool | None = None


class _Group(msgspec.Struct):
    entries: list[_Entry]
    paused: bool | None = None
    timezone: str | None = None


class _GroupPatch(msgspec.Struct):
    paused: bool | UnsetType = UNSET
    timezone: str | None | UnsetType = UNSET


class _Paused(msgspec.Struct):
    paused: bool


_entry = msgspec.json.Decoder(_Entry)
_group = msgspec.json.Decoder(_Group)
_group_patch = msgspec.json.Decoder(_GroupPatch)
_paused = msgspec.json.Decoder(_Paused)


ENTRY_STEPS = 200
"""The steps of 100 ns that the check of an entry takes."""


def check_cron(name: str) -> str:
    """Check the name of a group or an entry. Raises `InvalidRequest`."""
    return check_name("name", name)


def decode_entry(body: bytes, codec: BodyCodec, limits: Limits, name: str | None) -> EntryDraft:
    """The body of one entry. A `name` in the path replaces the one in the body."""
    draft = _drafted(decode(body, codec, _entry), codec, limits)
    return draft if name is None else msgspec.structs.replace(draft, name=name)


def decode_group(body: bytes, codec: BodyCodec, limits: Limits) -> _Group:
    """The body of a group with all its entries, which are not checked yet."""
    sent = decode(body, codec, _group)
    check_items(len(sent.entries), limits, "entries")
    return sent


def drafts_in(sent: _Group, codec: BodyCodec, limits: Limits) -> Iterator[EntryDraft]:
    """The entries of a group, one after the other. Their names are unique.

    Each takes about `ENTRY_STEPS`, and there may be thousands.
    """
    names = set[str]()
    for entry in sent.entries:
        draft = _drafted(entry, codec, limits)
        if entry.name in names:
            raise InvalidRequest(f'duplicate cron entry name: "{entry.name}"')
        names.add(entry.name)
        yield draft


def group_draft(sent: _Group, drafts: Sequence[EntryDraft]) -> GroupDraft:
    """The draft of a group with these entries."""
    return GroupDraft(sent.paused, _zone(sent.timezone), drafts)


def decode_group_patch(body: bytes, codec: BodyCodec) -> GroupPatch:
    """The body that pauses or resumes a group, or changes its zone. Null clears the zone."""
    sent = decode(body, codec, _group_patch)
    return GroupPatch(
        sent.paused, sent.timezone if sent.timezone is UNSET else _zone(sent.timezone)
    )


def decode_paused(body: bytes, codec: BodyCodec) -> bool:
    """The body that pauses or resumes an entry."""
    return decode(body, codec, _paused).paused


def _drafted(sent: _Entry, codec: BodyCodec, limits: Limits) -> EntryDraft:
    check_cron(sent.name)
    expression = CronExpression(sent.expression)
    zone = _zone(sent.timezone)
    if sent.job.ready_at is not None:
        raise InvalidRequest("ready_at is not supported for cron entries")
    job = new_job(sent.job, codec, limits.payload, set())
    return EntryDraft(sent.name, expression, zone, sent.paused, job)


def _zone(name: str | None) -> str | None:
    if name is not None:
        zone_named(name)
    return name


# MessagePack takes the place of the JSON texts of a document that was made.
class TemplateDocument(SentFields, frozen=False):  # type: ignore[misc]
    """The job that an entry enqueues, as it was sent. Fields that are not set are left out."""

    type: str
    queue: str
    priority: int
    payload: Raw
    meta: Raw | UnsetType = UNSET
    dedupe: DedupeRule | None = None
    budgets: list[DrawDocument] | None = None


class CronEntryDocument(msgspec.Struct, omit_defaults=True):
    """An entry. Times are in milliseconds since the epoch.

    A `fault` says why its schedule cannot be evaluated on this host: it is set aside until it can.
    """

    name: str
    expression: str
    paused: bool
    job: TemplateDocument
    timezone: str | None = None
    paused_at: int | None = None
    resumed_at: int | None = None
    next_enqueue_at: int | None = None
    last_enqueue_at: int | None = None
    fault: str | None = None


class CronNames(msgspec.Struct):
    """The names of the groups."""

    crons: list[str]


class CronGroupDocument(msgspec.Struct, omit_defaults=True):
    """A group with its entries. Times are in milliseconds since the epoch.

    A change leaves `entries` out if their jobs have more than 64 MiB.
    """

    name: str
    paused: bool
    entries: list[CronEntryDocument] | UnsetType = UNSET
    timezone: str | None = None
    paused_at: int | None = None
    resumed_at: int | None = None


def group_document(group: CronGroup, entries: Sequence[CronEntry] | None) -> CronGroupDocument:
    """A group with these entries, in their order. None are those that are too large to be shown."""
    return CronGroupDocument(
        name=group.name,
        paused=group.paused,
        entries=UNSET if entries is None else [entry_document(entry) for entry in entries],
        timezone=group.timezone,
        paused_at=group.paused_at,
        resumed_at=group.resumed_at,
    )


def entry_document(entry: CronEntry) -> CronEntryDocument:
    return CronEntryDocument(
        name=entry.name,
        expression=entry.expression,
        paused=entry.paused,
        job=_template(entry.job),
        timezone=entry.timezone,
        paused_at=entry.paused_at,
        resumed_at=entry.resumed_at,
        next_enqueue_at=entry.next_at,
        last_enqueue_at=entry.last_at,
        fault=entry.fault,
    )


def _template(job: NewJob) -> TemplateDocument:
    options, extras = job.options or NO_OPTIONS, job.extras or NO_EXTRAS
    return TemplateDocument(
        type=job.type,
        queue=job.queue,
        priority=job.priority,
        payload=Raw(job.payload),
        meta=UNSET if extras.meta is None else Raw(extras.meta),
        dedupe=job.dedupe,
        budgets=draw_documents(draws_in(job.options)),
        group=job.group,
        ttl_ms=job.ttl_ms,
        **_key(job),
        **values_of(SettingFields, options),
        **values_of(BroughtFields, extras),
    )


def _key(job: NewJob) -> dict[str, Any]:
    """The fields of the unique key, if the job has one, as far as they are not the usual ones."""
    if job.unique_key is None:
        return {}
    said = {"unique_key": job.unique_key, "unique_while": NAMES[job.unique_while or Scope.QUEUED]}
    if job.unique_in is KeySpace.QUEUE:
        said["unique_in"] = "queue"
    if job.on_conflict is not OnConflict.RETURN:
        said["on_conflict"] = job.on_conflict.value
    return said


# The names of these shapes in the description of the API.
CronEntryBody, CronGroupBody, CronGroupPatchBody, CronPausedBody = (
    _Entry,
    _Group,
    _GroupPatch,
    _Paused,
)


READ, MANAGE = KeyScope.READ, KeyScope.MANAGE

_GROUP = "/crons/{group}"
_ENTRIES = f"{_GROUP}/entries"
_ENTRY = f"{_ENTRIES}/{{entry}}"

_NO_GROUP = {404: "There is no such group."}
_NO_ENTRY = {404: "There is no such group or entry."}
_EXISTS = {409: "An entry with this name exists already."}

LIST = Verb("GET", "/crons", READ, CronNames)
CLEAR = Verb("DELETE", "/crons", MANAGE, Deleted)
GET_GROUP = Verb("GET", _GROUP, READ, CronGroupDocument, refusals=_NO_GROUP)
PUT_GROUP = Verb("PUT", _GROUP, MANAGE, CronGroupDocument, CronGroupBody, refusals=UNBUILT)
PATCH_GROUP = Verb(
    "PATCH", _GROUP, MANAGE, CronGroupDocument, CronGroupPatchBody, refusals=_NO_GROUP
)
DELETE_GROUP = Verb("DELETE", _GROUP, MANAGE, NoneType, refusals=_NO_GROUP)
ADD_ENTRY = Verb(
    "POST",
    _ENTRIES,
    MANAGE,
    CronEntryDocument,
    CronEntryBody,
    refusals=_EXISTS | UNBUILT,
    created=True,
)
GET_ENTRY = Verb("GET", _ENTRY, READ, CronEntryDocument, refusals=_NO_ENTRY)
PUT_ENTRY = Verb("PUT", _ENTRY, MANAGE, CronEntryDocument, CronEntryBody, refusals=UNBUILT)
PATCH_ENTRY = Verb("PATCH", _ENTRY, MANAGE, CronEntryDocument, CronPausedBody, refusals=_NO_ENTRY)
DELETE_ENTRY = Verb("DELETE", _ENTRY, MANAGE, NoneType, refusals=_NO_ENTRY)
