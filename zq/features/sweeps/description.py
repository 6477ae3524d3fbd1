"""The parameters and answers of the routes that change many jobs, or take a change back."""

import msgspec

from zq.features.sweeps.model import MOST_REASON
from zq.features.sweeps.wire import (
    SweepDocument,
    SweepPreviewDocument,
    SweepsDocument,
    UndoneDocument,
)
from zq.http.api.description.operation import Operation
from zq.verbs.parameters import CHOICE, FIFTY, TEXT, WHOLE
from zq.verbs.refusals import ENDED, NO_JOB, UNBUILT
from zq.verbs.verb import Parameter
from zq.wire import bodies, settings
from zq.wire.counts import Deleted
from zq.wire.documents import JobDocument


class Requeued(msgspec.Struct):
    """How many dead jobs are ready again."""

    requeued: int


class Redriven(msgspec.Struct):
    """How many dead jobs are ready again, by the older name."""

    redriven: int


class Patched(msgspec.Struct):
    """How many jobs were changed."""

    patched: int


class Cancelled(msgspec.Struct):
    """How many jobs were cancelled."""

    cancelled: int


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
_NO_SWEEP = {404: "There is no such sweep."}
_REFUSED = {422: "A status or a value does not allow this."}

OPERATIONS: dict[tuple[str, str], Operation] = {
    ("PATCH", "/jobs"): Operation(
        {200: Patched},
        bodies.PatchBody,
        parameters=CHOSEN,
        refusals=_REFUSED | SWEEPING,
    ),
    ("DELETE", "/jobs"): Operation({200: Deleted}, parameters=CHOSEN, refusals=UNBUILT | SWEEPING),
    ("POST", "/jobs/{id}/requeue"): Operation(
        {200: JobDocument}, parameters=(_HOME,), refusals=NO_JOB | ENDED
    ),
    ("POST", "/jobs/requeue"): Operation(
        {200: Requeued},
        settings.RequeueBody,
        optional_body=True,
        parameters=CHOSEN,
        refusals=_REFUSED | SWEEPING,
    ),
    ("POST", "/jobs/{id}/retry"): Operation(
        {200: JobDocument}, parameters=(_HOME,), refusals=NO_JOB | ENDED
    ),
    ("POST", "/jobs/redrive"): Operation(
        {200: Redriven},
        settings.RequeueBody,
        optional_body=True,
        parameters=CHOSEN,
        refusals=_REFUSED | SWEEPING,
    ),
    ("GET", "/sweeps/preview"): Operation(
        {200: SweepPreviewDocument},
        parameters=(*CHOICE, _VERB, _FORCE),
        refusals=_REFUSED,
    ),
    ("GET", "/sweeps"): Operation({200: SweepsDocument}),
    ("GET", "/sweeps/ended"): Operation(
        {200: SweepsDocument},
        parameters=(Parameter("before", WHOLE, "Only sweeps before this id."), FIFTY),
    ),
    ("GET", "/sweeps/{id}"): Operation({200: SweepDocument}, refusals=_NO_SWEEP),
    ("POST", "/sweeps/{id}/undo"): Operation(
        {200: UndoneDocument},
        parameters=(_REASON,),
        refusals={**_NO_SWEEP, 409: "There is nothing to take back.", **_MANY},
    ),
    ("DELETE", "/sweeps/{id}"): Operation({204: None}, refusals=_NO_SWEEP),
    ("POST", "/jobs/cancel"): Operation(
        {200: Cancelled},
        bodies.CancelBody,
        optional_body=True,
        parameters=CHOSEN,
        refusals=_REFUSED | SWEEPING,
    ),
    ("POST", "/jobs/{id}/cancel"): Operation(
        {200: JobDocument}, bodies.CancelBody, optional_body=True, refusals=NO_JOB | ENDED
    ),
}
