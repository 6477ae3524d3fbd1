"""Tasks that the server enqueues by cron: those of `App.periodic`, as one group of entries."""

import logging
from typing import Any

from zq.client.core import Core
from zq.client.errors import InvalidOption
from zq.client.task import Task
from zq.features.crons.client import Schedule, ShownGroup
from zq.features.crons.model_expression import CronExpression, zone_named
from zq.model.errors import InvalidRequest
from zq.model.names import check_name

log = logging.getLogger("zq.worker")

DEFAULT_GROUP = "app"
"""The group of schedules of an app that names none."""


class Periodic:
    """The cron entries of an app, in a group of its server."""

    def __init__(self, core: Core, group: str | None) -> None:
        """Without a `group`, the group is that of all apps that name none."""
        self.owns_group = group is not None
        self.group = check_name("cron_group", group or DEFAULT_GROUP)
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
        """Store these entries. Paused entries stay paused.

        They replace the server's group if it is the app's own. In a group that may have entries of
        other apps, these stay, and the log names them.
        """
        schedules = self._core.backend.schedules
        if self.owns_group:
            return await schedules.replace(self.group, [*self.schedules.values()])
        for each in self.schedules.values():
            await schedules.put(self.group, each)
        group = await schedules.group(self.group)
        others = [entry.name for entry in group.entries if entry.name not in self.schedules]
        if others:
            log.warning(
                "the group %r of schedules has others than those of this app: %s. They go on, since"
                " they may be another app's: give each app a cron_group of its own, and remove what"
                " is old by zq cron remove %s NAME",
                *(self.group, ", ".join(others), self.group),
            )
        return group
