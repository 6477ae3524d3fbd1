"""Findings that take reads: stuck work, jobs that budgets cannot pay, lanes and devices."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, Self

from zq.features.devices.store import DeviceReads
from zq.features.diagnosis.model_findings import (
    Finding,
    FindingCode,
    Severity,
    findings_of_devices,
    findings_of_lanes,
)
from zq.features.diagnosis.service_stuck import StuckWork
from zq.features.forward.service import Lanes
from zq.features.trends.model import MINUTE_MS
from zq.features.waits.model import budget_text
from zq.features.waits.model_queue import BudgetLine
from zq.features.waits.store import WaitReads
from zq.model.clock import Clock
from zq.model.settings import NO_SETTINGS, QueueSettings
from zq.service.services import Services
from zq.store.api import Store

UNPAID_MS = MINUTE_MS
"""The time in ms for which jobs may wait for tokens before anybody is told."""

EVERY_MS = 5_000
MOST_LINES = 1_000


class NotedFindings(NamedTuple):
    """The keys of jobs that seem stuck, and what was found."""

    stuck: frozenset[int]
    findings: Sequence[Finding]


class SlowFindings:
    """Findings that take reads. They are looked for every five seconds at most."""

    @classmethod
    def of(cls, services: Services) -> Self:
        """The slow findings of a server."""
        return cls(services.store, services.clock, services[StuckWork], services[Lanes])

    def __init__(self, store: Store, clock: Clock, stuck: StuckWork, lanes: Lanes) -> None:
        self._reads = store.reads.of(WaitReads)
        self._devices = store.reads.of(DeviceReads)
        self._clock = clock
        self._stuck = stuck
        self._lanes = lanes
        self._looked = float("-inf")
        self._unpaid: Sequence[Finding] = ()
        self._of_devices: Sequence[Finding] = ()

    async def read(self, settings: Mapping[str, QueueSettings]) -> NotedFindings:
        """The findings of this kind about all queues with these settings. Those that are paused
        need no tokens."""
        stuck = await self._stuck.read()
        now = self._clock.now_ms()
        if now - self._looked >= EVERY_MS:
            self._looked = now
            self._unpaid = list(_findings(await self._reads.unpaid_lines(MOST_LINES, now), now))
            self._of_devices = list(findings_of_devices(await self._devices.device_sums(now)))
        unpaid = [
            finding
            for finding in self._unpaid
            if not settings.get(finding.queue or "", NO_SETTINGS).paused
        ]
        of_lanes = findings_of_lanes(self._lanes.errors())
        return NotedFindings(stuck.keys, [*stuck.findings, *unpaid, *of_lanes, *self._of_devices])


def _findings(lines: Sequence[BudgetLine], now: int) -> Iterator[Finding]:
    """One for each queue with jobs that wait for tokens: of those of its jobs that are the most."""
    told = set[str]()
    for line in lines:
        is_late = line.since is not None and now - line.since >= UNPAID_MS
        if is_late and line.queue not in told:
            told.add(line.queue)
            text = f"{line.waiting:,} wait: {budget_text(line.waits[0])}"
            yield Finding(
                *(Severity.WARNING, FindingCode.BUDGET, text, line.queue),
                *(line.since, line.waiting),
            )
