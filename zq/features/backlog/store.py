"""What a store can be asked about the backlog of queues."""

from collections.abc import Iterator

import msgspec

from zq.features.backlog.model import KeyRoom, LineFacts, StoredBacklog
from zq.features.budgets.model import Draw, account_of
from zq.features.fair.model import let_through, limits_of
from zq.model.settings import NO_FAIR_RULE, FairRule
from zq.store.lookups import settings
from zq.store.snapshot import Snapshot, SnapshotLanes

MOST_COUNTED = 100_000
"""So many jobs of a queue are counted one by one: 100,000 steps in an index take some 10 ms."""

MOST_LINES = 1_000
"""So many lines of a queue are looked at."""

_draws = msgspec.json.Decoder(list[Draw])


class BacklogReads:
    """The reads behind the backlog of queues."""

    def __init__(self, lanes: SnapshotLanes) -> None:
        self._lanes = lanes

    async def backlog(self, queue: str, now: int) -> StoredBacklog:
        """The facts about a queue, from a bounded number of rows.

        A queue that never was has no jobs.
        """
        return await self._lanes.looks(_backlog, queue, self._lanes.steady_of(now))


def _backlog(snapshot: Snapshot, queue: str, now: int) -> StoredBacklog:
    """The facts about a queue at a steady time."""
    ((ready, running),) = snapshot.rows("counts", queue=queue)
    rules = settings(snapshot.core, queue)
    if rules.paused or not ready:
        return StoredBacklog(rules, ready, running)
    ((has_groups, has_lines),) = snapshot.rows("kinds", queue=queue)
    if not has_groups and not has_lines:
        return StoredBacklog(rules, ready, running, free=ready)
    free = snapshot.value("free", queue=queue, most=MOST_COUNTED)
    lines = list(_lines(snapshot, queue, MOST_COUNTED - free, rules.fair, now))
    counted = free + sum(line.waiting for line in lines)
    is_all = len(lines) < MOST_LINES and counted < MOST_COUNTED
    keys = {draw.key for line in lines for draw in line.draws}
    tokens = _tokens(snapshot, keys, now)
    return StoredBacklog(rules, ready, running, free, bool(has_groups), lines, tokens, is_all)


def _lines(
    snapshot: Snapshot, queue: str, most: int, rule: FairRule | None, now: int
) -> Iterator[LineFacts]:
    """The first lines of a queue, with up to `most` jobs in all."""
    rule = rule or NO_FAIR_RULE
    rows = snapshot.rows("lines", queue=queue, most=MOST_LINES)
    for line, draws, key, in_flight, paid_until, own_most, own_rate in rows:
        waiting = snapshot.value("in_line", line=line, most=most)
        most -= waiting
        wanted = _draws.decode(draws) if draws else ()
        room = None
        if key:
            at_once, rate = limits_of(rule, own_most, own_rate)
            bounds = [] if at_once is None else [max(at_once - in_flight, 0)]
            bounds += [] if rate is None else [let_through(paid_until, now, rate)]
            room = KeyRoom(key, min(bounds, default=None))
        yield LineFacts(waiting, wanted, room)


def _tokens(snapshot: Snapshot, keys: set[str], now: int) -> dict[str, int]:
    """What these budgets can pay now, as far as they are there."""
    if not keys:
        return {}
    accounts = map(account_of, snapshot.rows("budgets", keys=sorted(keys)))
    return {account.key: account.available(now) for account in accounts}


READS = (BacklogReads,)
