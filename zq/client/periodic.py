"""Tasks that the server enqueues by cron: those of `App.periodic`, as one group of entries."""

from typing import Any

from zq.client.core import Core
from zq.client.errors import InvalidOption
from zq.client.schedules import Schedule, ShownGroup
from zq.client.task import Task
from zq.model.cron.expression import CronExpression
from zq.model.cron.zones import zone_named
from zq.model.errors import InvalidRequest
from zq.model.names import check_name


class Periodic:
    """The cron entries of an app, in the group `group` of its server."""

    def __init__(self, core: Core, group: str) -> None:
        self.group = check_name("cron_group", group)
        self.schedules: dict[str, Schedule] = {}
        self._core = core

    def add(self, task: Task[Any, Any], expression: str, tz: str | None) -> None:
        """Have the server enqueue a task at the times of an expression. Raises `InvalidOption`."""
        try:
            CronExpression(expression)
            if tz is not None:
                zone_named(tz)
        except InvalidRequest as error:
            raise InvalidOption(f"{task.name}: {error.message}") from None
        name = task.name
        if name in self.schedules:
            raise InvalidOption(f"{name} has a schedule already: give it another task")
        try:
            payload = task.signature.payload((), {})
        except TypeError as error:
            raise InvalidOption(
                f"{name} cannot be periodic, because it is called without arguments: {error}"
            ) from None
        job = task.job(payload)
        if job.ready_at is not None:
            raise InvalidOption(f"{name}: delay and run_at have no place in a schedule")
        self.schedules[name] = Schedule(name, expression, job, tz)

    async def register(self) -> ShownGroup:
        """Replace the server's group with these entries. Paused entries stay paused."""
        return await self._core.backend.schedules.replace(self.group, [*self.schedules.values()])
