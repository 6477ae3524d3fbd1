"""The verbs about the targets of queues."""

from typing import Self

from zq.engine.inbox import Inbox
from zq.features.targets.model import AddTarget, RemoveTarget
from zq.model.commands import DeleteSlice
from zq.model.filters import Filter
from zq.model.reach import Reach
from zq.service.services import Services
from zq.store.api import Store

SLICE = 1_000
"""How many jobs of a target that goes are deleted in one tick."""


class Targets:
    """The targets of queues. The reach of a caller limits those that it may name."""

    @classmethod
    def of(cls, services: Services) -> Self:
        return cls(services.store, services.engine.inbox)

    def __init__(self, store: Store, inbox: Inbox) -> None:
        self._reads = store.reads
        self._inbox = inbox

    async def add(self, queue: str, target: str, reach: Reach) -> int:
        """Have new jobs of a queue go to a target too. Return how many jobs it got of those before.

        See `AddTarget`. Raises `TargetExists`, `GroupInFlight`, `FanOutChain`, `DeadLetterCycle`,
        `InvalidRequest`, `QueueFull` or `QueueOutOfReach`.
        """
        reach.require([queue, target])
        return await self._inbox.ask(AddTarget(queue, target, reach))

    async def remove(self, queue: str, target: str, reach: Reach) -> int:
        """Let a target of a queue go, with its jobs and settings. Return how many jobs it had.

        The jobs go slice by slice, so that other changes pass in between. The target goes with the
        last of them: if this ends early, the same call continues with the rest. Raises
        `TargetNotFound` or `QueueOutOfReach`.
        """
        reach.require([queue, target])
        targets = (await self._reads.settings(queue)).fan_out or ()
        # A queue that is its own target keeps its jobs.
        deleted = await self._empty(target) if target in targets and target != queue else 0
        return deleted + await self._inbox.ask(RemoveTarget(queue, target))

    async def _empty(self, queue: str) -> int:
        """Delete the jobs that a queue has by now, in full slices. Return how many.

        `RemoveTarget` deletes the rest.
        """
        its_jobs = Filter(queues=(queue,))
        deleted, after = 0, -1
        _, upto = await self._reads.key_range()
        while len(keys := await self._reads.keys(its_jobs, after, upto, SLICE)) == SLICE:
            deleted += await self._inbox.ask(DeleteSlice(keys, its_jobs))
            after = keys[-1]
        return deleted
