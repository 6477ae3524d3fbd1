"""Who gets which jobs of the naive queue: turns, gates, groups."""

from collections import Counter, defaultdict
from itertools import cycle

from zq.model.commands import Claim
from zq.model.job import JobRecord

from .naive_jobs import IN_FLIGHT, READY, SCHEDULED, NaiveJobs
from .naive_row import Row

CLAIM_ROUNDS = 4


class Claiming(NaiveJobs):
    """Gives ready jobs to those who have room for them."""

    def _claim(self, claim: Claim) -> list[JobRecord]:
        left = [dict(claim.credits[: claim.idle]), dict(claim.credits[claim.idle :])]
        turns = [cycle(course) for course in left]
        taken = self._heads(claim, claim.limit)
        for _ in range(CLAIM_ROUNDS):
            lapsed = [row for row in taken if row.lapsed(self.now)]
            if not lapsed:
                break
            for row in lapsed:
                self._expire(row)
            self._open_heads()
            taken = self._heads(claim, claim.limit)
        taken = [row for row in taken if not row.lapsed(self.now)]
        for row in taken:
            course = next(place for place, credits in enumerate(left) if any(credits.values()))
            holder = next(turn for turn in turns[course] if left[course][turn])
            left[course][holder] -= 1
            row.holder = holder
            row.deliveries += 1
            self.outcome.traffic.delivered[row.queue] += 1
            row.dequeued_at = self.now
            self._to(row, IN_FLIGHT)
        return [row.job() for row in taken]

    def _heads(self, claim: Claim, limit: int) -> list[Row]:
        """The jobs that the claim would get.

        Each queue gives as many as its gates let through, and each budget as far as it can pay.
        """
        ready = [
            row
            for row in self.rows.values()
            if row.status is READY
            and not row.held
            and (claim.queues is None or row.queue in claim.queues)
        ]
        through: Counter[str] = Counter(
            r.queue for r in self.rows.values() if r.status is IN_FLIGHT
        )
        spent: Counter[str] = Counter()
        heads: list[Row] = []
        for row in sorted(ready, key=self._place):
            settings = self._set_for(row.queue)
            most = settings.concurrency
            if settings.paused or (most is not None and through[row.queue] >= most):
                continue
            if len(heads) == limit or not self._pays(row, spent):
                continue
            through[row.queue] += 1
            heads.append(row)
        return heads

    def _place(self, row: Row) -> tuple[int, int]:
        """The place of a job in dispatch order, which may change while it waits."""
        aging_ms = self._set_for(row.queue).priority_aging_ms
        gained = 0 if aging_ms is None else self.now // aging_ms - row.ready_at // aging_ms
        return row.priority - gained, row.key

    def _open_heads(self) -> None:
        """Hold back every job of a group but the one in flight, or else the oldest unfinished."""
        groups: defaultdict[tuple[str, str], list[Row]] = defaultdict(list)
        for row in self.rows.values():
            if row.group is not None and row.status in (SCHEDULED, READY, IN_FLIGHT):
                groups[row.queue, row.group].append(row)
        for members in groups.values():
            head = min(members, key=lambda row: (row.status is not IN_FLIGHT, row.key))
            for row in members:
                if row.held and row is head and row.status is READY:
                    self.outcome.gained.add(row.queue)
                row.held = row is not head
