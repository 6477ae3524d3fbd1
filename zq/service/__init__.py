"""What may be asked of a queue: every verb that a door, the embedded backend or a command calls.

A verb takes and gives values of `zq.model`: jobs by their keys, never by the text of an id, and
never documents. Which service a verb belongs to goes by what it names:

jobs      jobs that are new, or named by a key or a unique key
listing   the jobs that match a filter, to be read
sweeps    the jobs that match a filter, to be changed
work      deliveries: taking jobs, holding them, saying what became of them
queues    a queue as a whole
budgets   what jobs draw tokens from
history   the record of attempts
crons     schedules that enqueue jobs
events    what happens to jobs, for those who listen
viewers   the lists of unfinished jobs as they change, for those who look
admin     the server: how it is, who works, clearing it
maintenance  what is stored: copying it whole, giving free space back

A verb that touches jobs is told how far its caller's reach goes. What lies beyond does not exist.
"""

from typing import NamedTuple

from zq.engine.news.events import EventHub
from zq.engine.news.viewers import Viewers
from zq.model.clock import Clock
from zq.model.ids import IdCodec
from zq.service.admin import Admin
from zq.service.budgets import Budgets
from zq.service.crons import Crons
from zq.service.history import History
from zq.service.jobs import Jobs
from zq.service.listing import Listing
from zq.service.maintenance import Maintenance
from zq.service.queues import Queues
from zq.service.sweeps import Sweeps
from zq.service.work import Work


class Services(NamedTuple):
    """The services of one store, and what doors need beside them. `zq.instance` builds it."""

    jobs: Jobs
    listing: Listing
    sweeps: Sweeps
    work: Work
    queues: Queues
    budgets: Budgets
    history: History
    crons: Crons
    events: EventHub
    viewers: Viewers
    admin: Admin
    maintenance: Maintenance
    clock: Clock
    """The clock that everything goes by."""
    ids: IdCodec
    """Turns keys into the ids of this store, and back."""
