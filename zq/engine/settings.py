"""The verbs about settings of queues."""

from collections.abc import Awaitable, Callable

from zq.model.commands import Command, SetQueue
from zq.model.reach import Reach
from zq.model.settings import NO_SETTINGS, QueueSettings, SettingsPatch
from zq.store import reads
from zq.store.store import Store

Submit = Callable[[Command], Awaitable[object]]


class SettingsOfQueues:
    """A part of the engine. A caller's reach bounds the queues that it may set, and set as target.

    Every verb raises `QueueOutOfReach`.
    """

    def __init__(self, store: Store, submit: Submit) -> None:
        self._store = store
        self._submit = submit

    async def get(self, queue: str, reach: Reach) -> QueueSettings:
        """What is set for a queue."""
        reach.require([queue])
        return await self._store.read(reads.settings, queue)

    async def replace(self, queue: str, settings: QueueSettings, reach: Reach) -> QueueSettings:
        """Set this for a queue and nothing else. Raises `DeadLetterCycle`."""
        return await self._set(queue, settings, reach)

    async def change(self, queue: str, patch: SettingsPatch, reach: Reach) -> QueueSettings:
        """Change some of what is set. Raises `DeadLetterCycle`."""
        return await self._set(queue, patch, reach)

    async def clear(self, queue: str, reach: Reach) -> None:
        """Let nothing be set for a queue."""
        await self._set(queue, NO_SETTINGS, reach)

    async def _set(
        self, queue: str, settings: QueueSettings | SettingsPatch, reach: Reach
    ) -> QueueSettings:
        target = settings.dead_letter
        reach.require([queue, target] if isinstance(target, str) else [queue])
        result = await self._submit(SetQueue(queue, settings))
        assert isinstance(result, QueueSettings)
        return result
