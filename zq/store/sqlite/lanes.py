"""What reads are made of: a lane for each kind of read, and the dates of steady times."""

from zq.model.clock import SteadyClock
from zq.store.dates import Dates
from zq.store.sqlite.readers import ReaderPool


class ReadLanes(Dates):
    """The lanes of a pool. A read uses the one in which it delays no shorter read."""

    def __init__(self, pool: ReaderPool, steady: SteadyClock) -> None:
        super().__init__(steady)
        self.looks = pool.looks.read
        self.scans = pool.scans.read
        self.sweeps = pool.sweeps.read
        self.deliveries = pool.deliveries.read
        self.views = pool.views.read
        self.pages = pool.topics.read
        self.followers = pool.followers.read
