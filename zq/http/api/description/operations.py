"""The parameters and answers of every route, in one table. Handlers describe what routes do.

A room has those of its own routes in its `description.py`.
"""

from typing import Any

from zq.http.api.description.shapes import (
    ClaimedJobs,
    Count,
    EnqueuedJobs,
    ErrorPage,
    EverySetting,
    JobPageSchema,
    KeysDocument,
    LeaseUntil,
    OpenLeases,
    OutcomeSchema,
    QueuesSchema,
)
from zq.http.verbs import operations
from zq.model.events import EventType
from zq.model.patching import StrictRetention
from zq.model.settings import QueueSettings
from zq.model.settling import Failure
from zq.rooms import parts
from zq.terms import EnqueueTerms
from zq.verbs import (
    ENDED,
    FILTERS,
    FULL,
    HUNDRED,
    KEY,
    KEY_QUEUE,
    LAST_ERROR,
    NO_JOB,
    ONWARD,
    PAGING,
    SEARCH,
    TEXT,
    UNBUILT,
    WAIT,
    WHOLE,
    Operation,
    Parameter,
    names,
)
from zq.wire import bodies, lease_bodies, settings
from zq.wire.documents import (
    ErrorDocument,
    EventDocument,
    JobDocument,
    KnownDocument,
    NoticeDocument,
    WorkersDocument,
)
from zq.wire.framing import EVENT_FRAMES, EVENT_LINES, EVENT_STREAM, EVENTS, MSGPACK_STREAM, NDJSON

_TAKEN = "A unique key belongs to a job that this key may not see."
_PUSH = {
    404: "The name is not valid for a queue, or the queue has no groups.",
    408: "The body took too long to arrive.",
    409: "The name of a copy belongs to a job that this key may not see.",
    413: "The body is over its limit.",
    415: "The body is neither JSON, MessagePack, a form, text nor bytes.",
    422: "The body is empty or cannot be read, or a FIFO queue lacks its group.",
    **FULL,
}
_LEFT_ALONE = {422: "Some jobs were left unchanged; the answer names them."}
_CIRCLE = {409: "Dead-letter queues would lead in a circle, or a target would have targets."}
_NO_WORKER = {404: "There is no such worker."}
_NOT_HELD = {404: "No such job is in flight."}
_STALE = {409: "The named delivery has ended."}
_REFUSED = {422: "A status or a value does not allow this."}
_OUTCOMES = {200: OutcomeSchema, 202: OutcomeSchema, 410: OutcomeSchema}

_TERMS = EnqueueTerms()
_ON_TERMS = tuple(Parameter(term.header, TEXT, term.text, place="header") for term in _TERMS.all)

CORE: dict[tuple[str, str], Operation] = {
    ("POST", "/jobs"): Operation(
        {
            201: JobDocument,
            200: (JobDocument, KnownDocument, OutcomeSchema),
            202: OutcomeSchema,
            410: OutcomeSchema,
        },
        bodies.JobBody,
        parameters=(WAIT, *_ON_TERMS),
        refusals={**NO_JOB, 409: _TAKEN, **UNBUILT, **FULL},
    ),
    ("POST", "/jobs/bulk"): Operation(
        {201: EnqueuedJobs, 200: EnqueuedJobs},
        _TERMS.bulk.type,
        parameters=_ON_TERMS,
        refusals={409: _TAKEN, **UNBUILT, **FULL},
    ),
    ("GET", "/jobs"): Operation(
        {200: JobPageSchema}, parameters=(*PAGING, *FILTERS, SEARCH, LAST_ERROR), refusals=UNBUILT
    ),
    ("GET", "/jobs/count"): Operation(
        {200: Count}, parameters=(*FILTERS, ONWARD, SEARCH), refusals=UNBUILT
    ),
    ("GET", "/jobs/take"): Operation(
        {200: (JobDocument, NoticeDocument)},
        parameters=(
            Parameter("prefetch", WHOLE, "How many jobs it may hold at once: 1; 0 is no limit."),
            Parameter("queue", names(), "Take from these queues only."),
            Parameter(
                "lease_ms",
                {"type": "integer", "minimum": 1},
                "How long a job may go unacknowledged before the stream ends.",
            ),
            Parameter(
                "concurrency",
                {"type": "integer", "minimum": 1},
                "How many jobs its worker runs at once: so many stall if it breaks off.",
            ),
            Parameter("control", {"enum": [0, 1]}, "1: send notices too."),
            Parameter(
                "stall_limit",
                {"type": "integer", "minimum": 0},
                "How often a job may stall before it dies, if its queue has no `stall_limit`.",
            ),
            Parameter("worker", TEXT, "The worker's name, as `worker-id` has it."),
            Parameter("worker-id", TEXT, "The worker's name.", place="header"),
        ),
        plain_refusal=True,
        streams=(NDJSON.content_type, MSGPACK_STREAM.content_type, EVENT_STREAM.content_type),
    ),
    ("GET", "/queues"): Operation({200: QueuesSchema}),
    ("GET", "/jobs/{id}"): Operation({200: JobDocument}, refusals=NO_JOB),
    ("PATCH", "/jobs/{id}"): Operation(
        {200: JobDocument}, bodies.PatchBody, refusals=NO_JOB | _REFUSED
    ),
    ("DELETE", "/jobs/{id}"): Operation({204: None}, refusals=NO_JOB),
    ("POST", "/jobs/success"): Operation({204: None}, bodies.SuccessesBody, refusals=_LEFT_ALONE),
    ("POST", "/jobs/{id}/success"): Operation(
        {204: None}, bodies.SuccessBody, optional_body=True, refusals=_NOT_HELD | _STALE
    ),
    ("POST", "/jobs/{id}/failure"): Operation(
        {200: JobDocument}, Failure, refusals=_NOT_HELD | _STALE
    ),
    ("POST", "/jobs/{id}/progress"): Operation(
        {204: None}, bodies.ProgressBody, refusals=_NOT_HELD | _STALE
    ),
    ("POST", "/queues/{queue}/claim"): Operation({200: ClaimedJobs}, lease_bodies.ClaimBody),
    ("POST", "/jobs/extend"): Operation(
        {200: LeaseUntil}, lease_bodies.ExtendManyBody, refusals=_LEFT_ALONE
    ),
    ("POST", "/jobs/release"): Operation(
        {204: None}, lease_bodies.ReleaseManyBody, refusals=_LEFT_ALONE
    ),
    ("POST", "/jobs/{id}/extend"): Operation(
        {200: LeaseUntil}, lease_bodies.ExtendBody, refusals=_NOT_HELD | _STALE
    ),
    ("POST", "/jobs/{id}/release"): Operation(
        {204: None}, lease_bodies.ReleaseBody, optional_body=True, refusals=_NOT_HELD | _STALE
    ),
    **{
        ("POST", f"/queues/{{queue}}/push{rest}"): Operation(
            {202: (JobDocument, KnownDocument)}, refusals=_PUSH
        )
        for rest in ("", "/{group}", "/{group}/{dedupe}")
    },
    ("GET", "/workers"): Operation({200: WorkersDocument}),
    ("GET", "/leases"): Operation(
        {200: OpenLeases},
        parameters=(HUNDRED,),
    ),
    ("POST", "/workers/{id}/drain"): Operation({200: WorkersDocument}, refusals=_NO_WORKER),
    ("DELETE", "/workers/{id}"): Operation({200: WorkersDocument}, refusals=_NO_WORKER),
    ("GET", "/keys"): Operation({200: KeysDocument}),
    ("GET", "/queues/settings"): Operation({200: EverySetting}),
    ("GET", "/queues/{queue}/settings"): Operation({200: QueueSettings}),
    ("PUT", "/queues/{queue}/settings"): Operation(
        {200: QueueSettings}, settings.SettingsBody, refusals=_CIRCLE
    ),
    ("PATCH", "/queues/{queue}/settings"): Operation(
        {200: QueueSettings}, settings.SettingsPatchBody, refusals=_CIRCLE
    ),
    ("DELETE", "/queues/{queue}/settings"): Operation({204: None}),
    ("GET", "/jobs/{id}/errors"): Operation({200: ErrorPage}, parameters=PAGING, refusals=NO_JOB),
    ("GET", "/jobs/{id}/errors/{attempt}"): Operation(
        {200: ErrorDocument},
        refusals={404: "There is no such job or failure."},
        plain_refusal=True,
    ),
    ("GET", "/jobs/{id}/result"): Operation(_OUTCOMES, parameters=(WAIT,), refusals=NO_JOB),
    ("GET", "/jobs/by-key"): Operation(
        {200: JobDocument}, parameters=(KEY, KEY_QUEUE), refusals=NO_JOB
    ),
    ("POST", "/jobs/by-key/cancel"): Operation(
        {200: JobDocument},
        bodies.CancelBody,
        optional_body=True,
        parameters=(KEY, KEY_QUEUE),
        refusals=NO_JOB | ENDED,
    ),
    ("PATCH", "/jobs/{id}/retention"): Operation(
        {200: JobDocument}, StrictRetention, refusals=NO_JOB | ENDED
    ),
    ("GET", "/events"): Operation(
        {200: EventDocument},
        parameters=(
            Parameter("queue", names(), "Of these queues only."),
            Parameter("job", names(), "Of these jobs only."),
            Parameter("types", names(*EventType), "Of these types only."),
            Parameter("Last-Event-ID", TEXT, "Begin after this event.", place="header"),
        ),
        streams=(EVENTS.content_type, EVENT_LINES.content_type, EVENT_FRAMES.content_type),
    ),
    ("GET", "/openapi.json"): Operation({200: dict[str, Any]}),
}

OPERATIONS: dict[tuple[str, str], Operation] = dict(CORE)
for _table in parts("description", "OPERATIONS", dict):
    OPERATIONS |= _table
OPERATIONS |= operations()
