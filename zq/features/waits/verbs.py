"""The verbs about what jobs and queues wait for."""

from zq.features.waits.model_queue import QueueWhy
from zq.features.waits.wire import (
    OpenGroupsDocument,
    ScheduledJobsDocument,
    StuckJobsDocument,
    WaitDocument,
)
from zq.model.keys import KeyScope
from zq.verbs.parameters import FIFTY, TEXT
from zq.verbs.verb import NO_JOB, Parameter, Verb

READ = KeyScope.READ

_AFTER_PAGE = Parameter("after", TEXT, "The `next` of the page before.")
_AFTER_NAME = Parameter("after", TEXT, "Only groups after this name.")

WHY = Verb("GET", "/jobs/{id}/why", READ, WaitDocument, refusals=NO_JOB)
WHY_QUEUE = Verb("GET", "/queues/{queue}/why", READ, QueueWhy)
SCHEDULED = Verb("GET", "/scheduled", READ, ScheduledJobsDocument, query=(_AFTER_PAGE, FIFTY))
GROUPS = Verb("GET", "/queues/{queue}/groups", READ, OpenGroupsDocument, query=(_AFTER_NAME, FIFTY))
STUCK = Verb("GET", "/stuck", READ, StuckJobsDocument, query=(FIFTY,))
