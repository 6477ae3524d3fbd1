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

from zq.engine.news.events import EventHub
from zq.engine.news.tallies import QueueTallies
from zq.engine.news.viewers import Viewers
from zq.engine.turns import Turns
from zq.model.clock import Clock
from zq.model.ids import IdCodec
from zq.service.admin import Admin
from zq.service.audit import Audit
from zq.service.budgets import Budgets
from zq.service.cleaning import Cleaning
from zq.service.crons import Crons
from zq.service.ended_sweeps import EndedSweeps
from zq.service.failures import Failures
from zq.service.history import History
from zq.service.jobs import Jobs
from zq.service.judge import QueueJudge
from zq.service.listing import Listing
from zq.service.lookback import Lookback
from zq.service.lookout import Lookout
from zq.service.maintenance import Maintenance
from zq.service.marks import Marks
from zq.service.noted import Noted
from zq.service.queue_topics import QueueTopics
from zq.service.queues import Queues
from zq.service.replays import Replays
from zq.service.routers import Routers
from zq.service.schemas import Schemas
from zq.service.status import StatusBoard
from zq.service.stuck import StuckWork
from zq.service.suggestions import Suggestions
from zq.service.sweeps import Sweeps
from zq.service.topics import Topics
from zq.service.trends import Trends
from zq.service.type_trends import TypeTrends
from zq.service.users import Users
from zq.service.waits import Waits
from zq.service.watches import Watches
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
