"""The parameters and answers of every route, in one table. Handlers describe what routes do."""

from typing import Any

from zq.features.audit.wire import ActionsDocument
from zq.features.budgets.description import BUDGETS
from zq.features.crons.description import CRONS
from zq.features.failures.model import FailureRange
from zq.features.failures.service import FailureOrder
from zq.features.failures.wire import FailuresDocument
from zq.features.history.wire import HistoryDocument
from zq.features.schemas.wire import (
    CleaningDocument,
    QueueSchemaDocument,
    QueueSchemasDocument,
    Replayed,
    ReplaySent,
    SchemaSent,
)
from zq.features.search.wire import NearQueuesDocument, SuggestionsDocument
from zq.features.sweeps.wire import (
    SweepDocument,
    SweepPreviewDocument,
    SweepsDocument,
    UndoneDocument,
)
from zq.features.trends.model import TimeMark
from zq.features.trends.service import TrendRange
from zq.features.trends.service_types import TypeRange, TypeSort
from zq.features.trends.wire import NewMark, TrendsDocument
from zq.features.trends.wire_types import TypesDocument
from zq.features.waits.model_queue import QueueWhy
from zq.features.waits.wire import (
    OpenGroupsDocument,
    ScheduledJobsDocument,
    StuckJobsDocument,
    WaitDocument,
)
from zq.http.api.description.operation import MANY_SWEEPS, SWEEPING, UNBUILT, Operation
from zq.http.api.description.parameters import (
    ACTIONS,
    BOUND,
    CHOICE,
    FIELD,
    FILTERS,
    FORCE,
    HOME,
    KEY,
    KEY_QUEUE,
    LAST_ERROR,
    ONWARD,
    PAGING,
    REASON,
    SEARCH,
    TEXT,
    TYPED,
    VERB,
    WAIT,
    WHOLE,
    Parameter,
    names,
)
from zq.http.api.description.shapes import (
    AddedJobs,
    Cancelled,
    ClaimedJobs,
    Count,
    Deleted,
    EnqueuedJobs,
    ErrorPage,
    EverySetting,
    Health,
    JobPageSchema,
    KeysDocument,
    LeaseUntil,
    OpenLeases,
    OutcomeSchema,
    Patched,
    QueuesSchema,
    Redriven,
    Requeued,
    Version,
    WorkersDocument,
)
from zq.model.events import EventType
from zq.model.settings import QueueSettings
from zq.model.settling import Failure
from zq.model.strict import StrictRetention
from zq.operators.ops.wire import StatusDocument
from zq.wire import bodies, bulk, lease_bodies, settings
from zq.wire.documents import ErrorDocument, JobDocument, KnownDocument, NoticeDocument
from zq.wire.events import EVENT_FRAMES, EVENT_LINES, EVENTS, EventDocument
from zq.wire.framing import EVENT_STREAM, MSGPACK_STREAM, NDJSON
from zq.wire.stats import QueueStatsDocument, StatsDocument

_FIFTY = Parameter(
    "limit", {"type": "integer", "minimum": 1, "maximum": 500}, "How many at most: 50."
)
_HUNDRED = Parameter("limit", WHOLE, "How many at most: 1 to 1,000; 100 by default.")
_TAKEN = "A unique key belongs to a job that this key may not see."
_FULL = {
    429: "A queue is full: try again after `Retry-After` seconds.",
    507: "There is no room for new jobs.",
}
_PUSH = {
    404: "The name is not valid for a queue, or the queue has no groups.",
    408: "The body took too long to arrive.",
    409: "The name of a copy belongs to a job that this key may not see.",
    413: "The body is over its limit.",
    415: "The body is neither JSON, MessagePack, a form, text nor bytes.",
    422: "The body is empty or cannot be read, or a FIFO queue lacks its group.",
    **_FULL,
}
_LEFT_ALONE = {422: "Some jobs were left unchanged; the answer names them."}
_CIRCLE = {409: "Dead-letter queues would lead in a circle, or a target would have targets."}
_TARGET = {409: "It is a target already, or would have targets itself."}
_NO_TARGET = {404: "There is no such target."}
_NO_JOB = {404: "There is no such job."}
_NO_SCHEMA = {404: "The queue has no schema."}
_NO_WORKER = {404: "There is no such worker."}
_NO_SWEEP = {404: "There is no such sweep."}
_NOT_HELD = {404: "No such job is in flight."}
_STALE = {409: "The named delivery has ended."}
_ENDED = {409: "The job's status does not allow that."}
_REFUSED = {422: "A status or a value does not allow this."}
_OUTCOMES = {200: OutcomeSchema, 202: OutcomeSchema, 410: OutcomeSchema}

OPERATIONS: dict[tuple[str, str], Operation] = {
    ("POST", "/jobs"): Operation(
        {
            201: JobDocument,
            200: (JobDocument, KnownDocument, OutcomeSchema),
            202: OutcomeSchema,
            410: OutcomeSchema,
        },
        bodies.JobBody,
        parameters=(WAIT,),
        refusals={**_NO_JOB, 409: _TAKEN, **UNBUILT, **_FULL},
    ),
    ("POST", "/jobs/bulk"): Operation(
        {201: EnqueuedJobs, 200: EnqueuedJobs},
        bulk.JobsBody,
        refusals={409: _TAKEN, **UNBUILT, **_FULL},
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
    ("GET", "/jobs/{id}"): Operation({200: JobDocument}, refusals=_NO_JOB),
    ("GET", "/jobs/{id}/why"): Operation({200: WaitDocument}, refusals=_NO_JOB),
    ("GET", "/queues/{queue}/why"): Operation({200: QueueWhy}),
    ("PATCH", "/jobs"): Operation(
        {200: Patched},
        bodies.PatchBody,
        parameters=(*CHOICE, *BOUND),
        refusals=_REFUSED | SWEEPING,
    ),
    ("PATCH", "/jobs/{id}"): Operation(
        {200: JobDocument}, bodies.PatchBody, refusals=_NO_JOB | _REFUSED
    ),
    ("DELETE", "/jobs"): Operation(
        {200: Deleted}, parameters=(*CHOICE, *BOUND), refusals=UNBUILT | SWEEPING
    ),
    ("DELETE", "/jobs/{id}"): Operation({204: None}, refusals=_NO_JOB),
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
        parameters=(_HUNDRED,),
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
    ("PUT", "/queues/{queue}/targets/{target}"): Operation({201: AddedJobs}, refusals=_TARGET),
    ("DELETE", "/queues/{queue}/targets/{target}"): Operation({200: Deleted}, refusals=_NO_TARGET),
    ("GET", "/queues/{queue}/groups"): Operation(
        {200: OpenGroupsDocument},
        parameters=(Parameter("after", TEXT, "Only groups after this name."), _FIFTY),
    ),
    ("GET", "/queues/schemas"): Operation({200: QueueSchemasDocument}),
    ("GET", "/queues/{queue}/schema"): Operation({200: QueueSchemaDocument}, refusals=_NO_SCHEMA),
    ("PUT", "/queues/{queue}/schema"): Operation({200: QueueSchemaDocument}, SchemaSent),
    ("DELETE", "/queues/{queue}/schema"): Operation({204: None}),
    ("POST", "/queues/{queue}/replay"): Operation(
        {200: Replayed},
        ReplaySent,
        optional_body=True,
        refusals={422: "The queue keeps no completed jobs, or none so old.", **_FULL},
    ),
    ("GET", "/cleaning"): Operation({200: CleaningDocument}),
    ("PUT", "/cleaning"): Operation({200: CleaningDocument}, CleaningDocument),
    ("POST", "/jobs/{id}/requeue"): Operation(
        {200: JobDocument}, parameters=(HOME,), refusals=_NO_JOB | _ENDED
    ),
    ("POST", "/jobs/requeue"): Operation(
        {200: Requeued},
        settings.RequeueBody,
        optional_body=True,
        parameters=(*CHOICE, *BOUND),
        refusals=_REFUSED | SWEEPING,
    ),
    ("POST", "/jobs/{id}/retry"): Operation(
        {200: JobDocument}, parameters=(HOME,), refusals=_NO_JOB | _ENDED
    ),
    ("POST", "/jobs/redrive"): Operation(
        {200: Redriven},
        settings.RequeueBody,
        optional_body=True,
        parameters=(*CHOICE, *BOUND),
        refusals=_REFUSED | SWEEPING,
    ),
    ("GET", "/sweeps/preview"): Operation(
        {200: SweepPreviewDocument},
        parameters=(*CHOICE, VERB, FORCE),
        refusals=_REFUSED,
    ),
    ("GET", "/audit"): Operation(
        {200: ActionsDocument},
        parameters=(
            Parameter("before", WHOLE, "Only actions before this `seq`."),
            _HUNDRED,
            *ACTIONS,
        ),
    ),
    ("GET", "/suggest"): Operation(
        {200: SuggestionsDocument},
        parameters=(FIELD, TYPED, Parameter("queue", TEXT, "For jobs of this queue.")),
    ),
    ("GET", "/queues/{queue}/near"): Operation({200: NearQueuesDocument}),
    ("GET", "/sweeps"): Operation({200: SweepsDocument}),
    ("GET", "/sweeps/ended"): Operation(
        {200: SweepsDocument},
        parameters=(Parameter("before", WHOLE, "Only sweeps before this id."), _FIFTY),
    ),
    ("GET", "/sweeps/{id}"): Operation({200: SweepDocument}, refusals=_NO_SWEEP),
    ("POST", "/sweeps/{id}/undo"): Operation(
        {200: UndoneDocument},
        parameters=(REASON,),
        refusals={**_NO_SWEEP, 409: "There is nothing to take back.", **MANY_SWEEPS},
    ),
    ("DELETE", "/sweeps/{id}"): Operation({204: None}, refusals=_NO_SWEEP),
    ("GET", "/failures"): Operation(
        {200: FailuresDocument},
        parameters=(
            Parameter("queue", names(), "Of these queues only."),
            Parameter("range", {"type": "string", "enum": list(FailureRange)}, "How far back."),
            Parameter("order", {"type": "string", "enum": list(FailureOrder)}, "Which come first."),
        ),
    ),
    ("GET", "/jobs/{id}/errors"): Operation({200: ErrorPage}, parameters=PAGING, refusals=_NO_JOB),
    ("GET", "/jobs/{id}/errors/{attempt}"): Operation(
        {200: ErrorDocument},
        refusals={404: "There is no such job or failure."},
        plain_refusal=True,
    ),
    ("GET", "/jobs/{id}/result"): Operation(_OUTCOMES, parameters=(WAIT,), refusals=_NO_JOB),
    ("GET", "/jobs/by-key"): Operation(
        {200: JobDocument}, parameters=(KEY, KEY_QUEUE), refusals=_NO_JOB
    ),
    ("POST", "/jobs/by-key/cancel"): Operation(
        {200: JobDocument},
        bodies.CancelBody,
        optional_body=True,
        parameters=(KEY, KEY_QUEUE),
        refusals=_NO_JOB | _ENDED,
    ),
    ("POST", "/jobs/cancel"): Operation(
        {200: Cancelled},
        bodies.CancelBody,
        optional_body=True,
        parameters=(*CHOICE, *BOUND),
        refusals=_REFUSED | SWEEPING,
    ),
    ("POST", "/jobs/{id}/cancel"): Operation(
        {200: JobDocument}, bodies.CancelBody, optional_body=True, refusals=_NO_JOB | _ENDED
    ),
    ("PATCH", "/jobs/{id}/retention"): Operation(
        {200: JobDocument}, StrictRetention, refusals=_NO_JOB | _ENDED
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
    ("GET", "/stats"): Operation({200: StatsDocument}),
    ("GET", "/stats/history"): Operation(
        {200: TrendsDocument},
        parameters=(
            Parameter("queue", TEXT, "Of this queue alone; otherwise of all together."),
            Parameter("range", {"type": "string", "enum": list(TrendRange)}, "How far back."),
        ),
    ),
    ("GET", "/stats/types"): Operation(
        {200: TypesDocument},
        parameters=(
            Parameter("queue", TEXT, "Of this queue alone; otherwise of all."),
            Parameter("type", TEXT, "Of this type alone, with its `points`."),
            Parameter("range", {"type": "string", "enum": list(TypeRange)}, "How far back."),
            Parameter("sort", {"type": "string", "enum": list(TypeSort)}, "Which come first."),
        ),
    ),
    ("POST", "/marks"): Operation({201: TimeMark}, NewMark),
    ("GET", "/scheduled"): Operation(
        {200: ScheduledJobsDocument},
        parameters=(Parameter("after", TEXT, "The `next` of the page before."), _FIFTY),
    ),
    ("GET", "/stuck"): Operation({200: StuckJobsDocument}, parameters=(_FIFTY,)),
    ("GET", "/queues/{queue}/stats"): Operation({200: QueueStatsDocument}),
    **BUDGETS,
    **CRONS,
    ("GET", "/history"): Operation(
        {200: HistoryDocument},
        parameters=(
            Parameter("after", WHOLE, "Records behind this one only."),
            Parameter("until", WHOLE, "Records up to this one only."),
            Parameter("limit", WHOLE, "How many at most: 1 to 10,000; 1,000 unless given."),
            Parameter("wait_ms", WHOLE, "How long to wait for a first record."),
        ),
        refusals={
            409: "There has never been a record of that number.",
            410: "The records behind `after` are past their retention.",
        },
    ),
    ("GET", "/health"): Operation({200: Health}),
    ("GET", "/healthz"): Operation({200: Health}),
    ("GET", "/status"): Operation({200: StatusDocument}),
    ("GET", "/version"): Operation({200: Version}),
    ("GET", "/openapi.json"): Operation({200: dict[str, Any]}),
    ("GET", "/metrics"): Operation({200: str}),
    ("POST", "/reset"): Operation({204: None}),
}
