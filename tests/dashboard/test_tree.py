"""Queues as a tree: what a branch says of its queues together, in slices if there are many."""

from zq.engine.subscribers.figures import QueueFlow
from zq.engine.turns import Turns
from zq.features.diagnosis.model import ALONE_MS, findings_of_queue
from zq.features.diagnosis.service_watched import QueueWorkers, WatchedQueue
from zq.model.lifecycle import Status
from zq.model.settings import QueueSettings
from zq.operators.page.http.tree import AT_A_TIME, branches
from zq.service.queues import QueueStatistics


def watched(name: str, ready: int = 1, workers: int = 0, paused: bool = False) -> WatchedQueue:
    flow = QueueFlow(ready, 0.0, 0.5)
    figures = QueueStatistics(name, {Status.READY: ready}, ready, flow, oldest_ready_at=100 - ready)
    queue = WatchedQueue(figures, QueueSettings(paused=paused), QueueWorkers(workers))
    return queue.with_findings(findings_of_queue(queue.facts, ALONE_MS + 100))


async def test_a_branch_has_the_sums_of_its_queues() -> None:
    queues = [watched("a.b", 3), watched("a.c", 5, workers=2), watched("a.d", paused=True)]
    rows, together = await branches([*queues, watched("alone"), watched("b.x")], "", Turns())
    assert [row.figures.queue for row in rows] == ["alone", "b.x", "a."]
    branch = together["a."]
    assert (branch.queues, branch.paused, branch.orphans) == (3, 1, 1)
    figures = branch.sum.figures
    assert figures.counts == {Status.READY: 9}
    assert (figures.oldest_ready_age_ms, figures.oldest_ready_at) == (5, 95)
    assert figures.deliveries == QueueFlow(9, 0.0, 1.5)
    assert branch.sum.taken_by.workers == 2
    rows, together = await branches(queues, "a.", Turns())
    assert [row.figures.queue for row in rows] == ["a.b", "a.c", "a.d"] and not together


async def test_many_queues_are_added_in_slices() -> None:
    turns = Turns()
    queues = [watched(f"a.{n}") for n in range(3 * AT_A_TIME)]
    _, together = await branches(queues, "", turns)
    assert together["a."].queues == len(queues)
    assert turns.waited == 3
