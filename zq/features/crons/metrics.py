"""The metrics of cron entries."""

from typing import NamedTuple

from zq.features.crons.service_running import Crons
from zq.http.api.parts import ApiParts
from zq.http.metrics import Metric, one


class CronFigures(NamedTuple):
    """The entries of all cron groups at one scrape."""

    entries: int
    lag: float
    """How many seconds ago the first entry became due."""
    faulty: int


class CronReader:
    """Reads the numbers of cron for a scrape."""

    def __init__(self, parts: ApiParts) -> None:
        self._crons = parts.services[Crons]

    async def read(self) -> CronFigures:
        """The entries of this moment. Raises `ReadTimeout`."""
        crons = self._crons
        return CronFigures(await crons.count(), crons.lag() / 1000, crons.faulty.entries)


READERS = (CronReader,)

METRICS = (
    Metric(
        "zq_cron_entries",
        "gauge",
        "Entries of cron groups.",
        lambda s: one(s[CronFigures].entries),
    ),
    Metric(
        "zq_cron_faulty_entries",
        "gauge",
        "Entries that are set aside: their schedules cannot be evaluated. `/health` names some.",
        lambda s: one(s[CronFigures].faulty),
    ),
    Metric(
        "zq_cron_firings_total",
        "counter",
        "Entries that were due and have moved on with their job, also with a duplicate.",
        lambda s: one(s.figures.jobs.fired),
    ),
    Metric(
        "zq_cron_put_off_total",
        "counter",
        "Times that the job of an entry was refused, such as by a full queue: it was tried again"
        " later.",
        lambda s: one(s.figures.jobs.put_off),
    ),
    Metric(
        "zq_cron_lag_seconds",
        "gauge",
        "For how long the entry that fires next has been due.",
        lambda s: one(s[CronFigures].lag),
    ),
)
