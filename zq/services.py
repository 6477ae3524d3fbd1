"""The services: every verb that a door, the embedded engine or the command line calls.

A verb takes and returns values of `zq.model`: jobs by their keys, never by the text of an id, and
never documents. The subject of a verb decides its service:

jobs      new jobs, and single jobs by a key or a unique key
listing   reading the jobs that match a filter
sweeps    changing the jobs that match a filter
ended_sweeps  what such changes have done, and how a cancellation is undone
schemas   schemas of payloads
replays   completed jobs that come once more
waits     why a job does not run
work      deliveries: taking jobs, holding them, settling them
queues    a queue as a whole
budgets   what jobs draw tokens from
failures  the causes of failures
history   the records of attempts
audit     the records of what operators do
crons     schedules that enqueue jobs
cleaning  the schedule by which expired jobs are deleted
topics    logs of records, which are no jobs
queue_topics  topics whose records are jobs: claimed and settled by their numbers
routers   what copies records from one topic to another
watches   readers that follow many topics
users     who may use the doors that know users
events    the events of jobs, for listeners
viewers   the changing lists of unfinished jobs, for viewers
tallies   what became of the jobs of each queue, counted once a door wants that
admin     the server: its health, its workers, clearing it
status    the state of the server, from what it counts anyway
trends    what happened over the last minutes, hours or days
type_trends  how jobs of each type ended, and how long they ran
lookback  the last hour of a queue, for its row
judge     what is wrong with queues, from their figures
noted     what is wrong and takes reads to find
lookout   one look at everything that operators watch
maintenance  the stored data: backup, and giving free space back
suggestions  what completes a filter, and queues whose names are like another one

A verb that touches jobs gets the reach of its caller. Jobs beyond the reach do not exist for it.
"""

from typing import NamedTuple

from zq.doors.queue_ti.service import Users
from zq.doors.topics.service import Topics
from zq.doors.topics.service_queues import QueueTopics
from zq.doors.topics.service_routers import Routers
from zq.doors.topics.service_watches import Watches
from zq.engine.subscribers.events import EventHub
from zq.engine.subscribers.tallies import QueueTallies
from zq.engine.turns import Turns
from zq.features.archive.service import Replays
from zq.features.archive.service_cleaning import Cleaning
from zq.features.audit.service import Audit
from zq.features.budgets.service import Budgets
from zq.features.crons.service import Crons
from zq.features.diagnosis.service_judge import QueueJudge
from zq.features.diagnosis.service_lookback import Lookback
from zq.features.diagnosis.service_noted import Noted
from zq.features.diagnosis.service_stuck import StuckWork
from zq.features.failures.service import Failures
from zq.features.history.service import History
from zq.features.schemas.service import Schemas
from zq.features.search.service_suggestions import Suggestions
from zq.features.sweeps.service import Sweeps
from zq.features.sweeps.service_ended import EndedSweeps
from zq.features.trends.service import Trends
from zq.features.trends.service_marks import Marks
from zq.features.trends.service_types import TypeTrends
from zq.features.waits.service import Waits
from zq.model.clock import Clock
from zq.model.ids import IdCodec
from zq.operators.admin.engine import Viewers
from zq.operators.ops.service import StatusBoard
from zq.operators.page.service import Lookout
from zq.service.admin import Admin
from zq.service.jobs import Jobs
from zq.service.listing import Listing
from zq.service.maintenance import Maintenance
from zq.service.queues import Queues
from zq.service.work import Work


class Services(NamedTuple):
    """The services of one store, and the other parts that doors need. `zq.instance` builds it."""

    jobs: Jobs
    listing: Listing
    sweeps: Sweeps
    ended_sweeps: EndedSweeps
    replays: Replays
    schemas: Schemas
    waits: Waits
    work: Work
    queues: Queues
    budgets: Budgets
    failures: Failures
    history: History
    audit: Audit
    crons: Crons
    cleaning: Cleaning
    topics: Topics
    queue_topics: QueueTopics
    routers: Routers
    watches: Watches
    users: Users
    events: EventHub
    viewers: Viewers
    tallies: QueueTallies
    admin: Admin
    status: StatusBoard
    trends: Trends
    type_trends: TypeTrends
    marks: Marks
    stuck: StuckWork
    noted: Noted
    judge: QueueJudge
    lookback: Lookback
    lookout: Lookout
    maintenance: Maintenance
    suggestions: Suggestions
    turns: Turns
    """Where slices of long work wait."""
    clock: Clock
    """The clock of the whole server."""
    ids: IdCodec
    """Converts keys to the ids of this store, and back."""
