"""The parameters and answers of the routes about what jobs wait for."""

from zq.features.waits.model_queue import QueueWhy
from zq.features.waits.wire import (
    OpenGroupsDocument,
    ScheduledJobsDocument,
    StuckJobsDocument,
    WaitDocument,
)
from zq.http.api.description.operation import Operation
from zq.verbs.parameters import FIFTY, TEXT
from zq.verbs.refusals import NO_JOB
from zq.verbs.verb import Parameter

OPERATIONS: dict[tuple[str, str], Operation] = {
    ("GET", "/jobs/{id}/why"): Operation({200: WaitDocument}, refusals=NO_JOB),
    ("GET", "/queues/{queue}/why"): Operation({200: QueueWhy}),
    ("GET", "/queues/{queue}/groups"): Operation(
        {200: OpenGroupsDocument},
        parameters=(Parameter("after", TEXT, "Only groups after this name."), FIFTY),
    ),
    ("GET", "/scheduled"): Operation(
        {200: ScheduledJobsDocument},
        parameters=(Parameter("after", TEXT, "The `next` of the page before."), FIFTY),
    ),
    ("GET", "/stuck"): Operation({200: StuckJobsDocument}, parameters=(FIFTY,)),
}
