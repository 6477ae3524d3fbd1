"""The verbs that change many jobs, or take a change back, and those about such changes."""

from types import NoneType
from typing import TYPE_CHECKING, Any, Literal

import msgspec
from msgspec import UNSET, UnsetType

from zq.features.sweeps.model import MOST_REASON
from zq.model.keys import KeyScope
from zq.model.lifecycle import NAMES
from zq.model.words import quoted
from zq.verbs import (
    CHOICE,
    ENDED,
    FIFTY,
    NO_JOB,
    TEXT,
    UNBUILT,
    WHOLE,
    Deleted,
    Parameter,
    Verb,
)
from zq.wire import bodies, settings
from zq.wire.documents import JobDocument

if TYPE_CHECKING:
    from zq.features.sweeps.model import StoredSweep, SweepOutline, SweepPreview
    from zq.model.filters import Filter
    from zq.model.ids import IdCodec


MOST_PLACES = 50


class SweepDocument(msgspec.Struct, kw_only=True):
    """A change by filter. Times are in milliseconds.

    `progress` is the part of all ids that was passed, from 0 to 1. A sweep that `stopped` has
    changed whole slices. `undone` counts the jobs that were taken back, and `left` those that may
    be, at least if `exact` is false.
    """

    id: str
    verb: str
    state: Literal["running", "done", "stopped"]
    started_at: int
    changed: int
    progress: float
    by: dict[str, Any]
    counted: int | UnsetType = UNSET
    actor: str | UnsetType = UNSET
    reason: str | UnsetType = UNSET
    changed_at: int | UnsetType = UNSET
    undone: int | UnsetType = UNSET
    left: int | UnsetType = UNSET
    exact: bool | UnsetType = UNSET


class SweepsDocument(msgspec.Struct):
    """Sweeps: those under way, the oldest first, or those that have ended, the latest first."""

    sweeps: list[SweepDocument]


class Patched(msgspec.Struct, omit_defaults=True):
    """How many jobs were changed. `kept` counts others by the reasons why they stay."""

    patched: int
    kept: dict[str, int] = {}


class Requeued(msgspec.Struct, omit_defaults=True):
    """How many dead jobs are ready again. `kept` counts others by the reasons why they stay."""

    requeued: int
    kept: dict[str, int] = {}


class Redriven(msgspec.Struct, omit_defaults=True):
    """How many dead jobs are ready again, by the older name."""

    redriven: int
    kept: dict[str, int] = {}


class Cancelled(msgspec.Struct):
    """How many jobs were cancelled. `undo` is the sweep that takes them back, for the page."""

    cancelled: int
    undo: str | UnsetType = UNSET


class SweptPlace(msgspec.Struct):
    """How many jobs of a change are in one status of one queue."""

    queue: str
    status: str
    n: int


class SweepPreviewDocument(msgspec.Struct):
    """How many jobs a change by filter would change, at least, and an id of this moment.

    `by` has the most frequent places, and `more` is how many places it leaves out. `no_effect`
    counts the jobs that match and would stay as they are, if that is known.
    """

    count: int
    exact: bool
    upto: str
    by: list[SweptPlace]
    more: int
    no_effect: int | UnsetType = UNSET


class UndoneDocument(msgspec.Struct):
    """How many jobs were taken back, how many stay cancelled by reasons, and how many are gone."""

    undone: int
    kept: dict[str, int]
    gone: int


def preview_document(preview: "SweepPreview", ids: "IdCodec") -> SweepPreviewDocument:
    """A look ahead at a change."""
    places = preview.places.most_common()
    return SweepPreviewDocument(
        count=preview.jobs,
        exact=preview.exact,
        upto=ids.text(preview.upto),
        by=[SweptPlace(queue, NAMES[status], n) for (queue, status), n in places[:MOST_PLACES]],
        more=max(len(places) - MOST_PLACES, 0),
        no_effect=UNSET if preview.unaffected is None else preview.unaffected,
    )


def running_document(
    id: int, outline: "SweepOutline", changed: int, passed: float, ids: "IdCodec"
) -> SweepDocument:
    """A sweep under way."""
    author = outline.author
    return SweepDocument(
        id=str(id),
        verb=outline.verb,
        state="running",
        started_at=outline.started_at,
        changed=changed,
        progress=round(passed, 4),
        by=_named(outline.filter, ids),
        counted=UNSET if outline.counted is None else outline.counted,
        actor=UNSET if author.actor is None else author.actor,
        reason=UNSET if author.reason is None else author.reason,
    )


def ended_document(sweep: "StoredSweep", ids: "IdCodec") -> SweepDocument:
    """A sweep that has changed jobs and no longer runs."""
    document = running_document(sweep.id, sweep.outline, sweep.changed, sweep.passed, ids)
    document.state = "done" if sweep.passed == 1 else "stopped"
    document.changed_at = sweep.changed_at
    if sweep.outline.verb == "cancel":
        document.undone = sweep.undone
    return document


def _named(filter: "Filter", ids: "IdCodec") -> dict[str, Any]:
    named = {
        "status": [NAMES[status] for status in sorted(filter.statuses)],
        "queue": list(filter.queues),
        "type": list(filter.types),
        "group": list(filter.groups),
        "id": ids.texts(filter.keys or ()),
        "error": list(filter.errors),
        "budgets.key": list(filter.budgets),
        "filter": filter.program,
        "search": " ".join(map(quoted, filter.words)),
        "sweep": None if filter.swept is None else str(filter.swept),
        "upto": None if filter.upto is None else ids.text(filter.upto),
    }
    return {name: value for name, value in named.items() if value}


READ, MANAGE = KeyScope.READ, KeyScope.MANAGE

_MANY = {429: "Too many changes by filter run: try again after `Retry-After` seconds."}
SWEEPING = _MANY | {409: "It would change more than the preview has told: look again."}
"""The refusals of a change by filter."""

_REASON = Parameter(
    "reason",
    {"type": "string", "maxLength": MOST_REASON},
    "Why, for the list of sweeps and the audit.",
)
CHOSEN = (
    *CHOICE,
    _REASON,
    Parameter(
        "count",
        WHOLE,
        "How many jobs a preview has counted, with its `upto`: the change is refused if it would"
        " change more. The operators' page has to send it.",
    ),
    Parameter("typed", TEXT, "With `count`: the queue, or `delete`, to delete over 100 jobs."),
)
"""The filter of a change, and what goes with it."""

_VERB = Parameter(
    "verb",
    {"type": "string", "enum": ["delete", "cancel", "requeue", "patch"]},
    "The change that is looked ahead to: `delete`.",
)
_FORCE = Parameter("force", {"type": "boolean"}, "Whether the cancellation is one by force.")
_HOME = Parameter("home", {"type": "boolean"}, "Whether it goes to the queue of its first death.")
_BEFORE = Parameter("before", WHOLE, "Only sweeps before this id.")
_NO_SWEEP = {404: "There is no such sweep."}
_REFUSED = {422: "A status or a value does not allow this."}
_NOTHING = {409: "There is nothing to take back."}

_SWEEP = "/sweeps/{id}"
_OF_MANY: dict[str, Any] = {"query": CHOSEN, "refusals": _REFUSED | SWEEPING}
_OF_ONE: dict[str, Any] = {"query": (_HOME,), "refusals": NO_JOB | ENDED}
_LIMIT: dict[str, Any] = {"body": settings.RequeueBody, "optional": True}
_FORCED: dict[str, Any] = {"body": bodies.CancelBody, "optional": True}

PATCH = Verb("PATCH", "/jobs", MANAGE, Patched, bodies.PatchBody, **_OF_MANY)
DELETE = Verb("DELETE", "/jobs", MANAGE, Deleted, query=CHOSEN, refusals=UNBUILT | SWEEPING)
REQUEUE = Verb("POST", "/jobs/requeue", MANAGE, Requeued, **_LIMIT, **_OF_MANY)
REDRIVE = Verb("POST", "/jobs/redrive", MANAGE, Redriven, **_LIMIT, **_OF_MANY)
CANCEL = Verb("POST", "/jobs/cancel", MANAGE, Cancelled, **_FORCED, **_OF_MANY)

REQUEUE_ONE = Verb("POST", "/jobs/{id}/requeue", MANAGE, JobDocument, **_OF_ONE)
RETRY_ONE = Verb("POST", "/jobs/{id}/retry", MANAGE, JobDocument, **_OF_ONE)
CANCEL_ONE = Verb(
    "POST", "/jobs/{id}/cancel", MANAGE, JobDocument, **_FORCED, refusals=NO_JOB | ENDED
)

PREVIEW = Verb(
    "GET",
    "/sweeps/preview",
    READ,
    SweepPreviewDocument,
    query=(*CHOICE, _VERB, _FORCE),
    refusals=_REFUSED,
)
RUNNING = Verb("GET", "/sweeps", READ, SweepsDocument)
ENDED_ONES = Verb("GET", "/sweeps/ended", READ, SweepsDocument, query=(_BEFORE, FIFTY))
GET = Verb("GET", _SWEEP, READ, SweepDocument, refusals=_NO_SWEEP)
UNDO = Verb(
    "POST",
    f"{_SWEEP}/undo",
    MANAGE,
    UndoneDocument,
    query=(_REASON,),
    refusals=_NO_SWEEP | _NOTHING | _MANY,
)
STOP = Verb("DELETE", _SWEEP, MANAGE, NoneType, refusals=_NO_SWEEP)
