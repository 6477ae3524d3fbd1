"""The settings of completed and expired jobs."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Annotated

from zq.setting import SCHEDULE, ConfigError, RoomSettings, Rule


@dataclass(frozen=True, kw_only=True)
class ArchiveSettings(RoomSettings):
    """The settings of the archive: when expired jobs are deleted."""

    queue_ti_delete_reaper_schedule: Annotated[
        str,
        Rule(
            SCHEDULE,
            "When expired jobs are deleted before their retention is over, such as `0 3 * * *` or"
            " `@every 1h`. A schedule that was set over HTTP comes first.",
        ),
    ] = ""

    def check(self, doors: Collection[str]) -> None:
        """Raise ConfigError if the schedule means nothing."""
        if not self.queue_ti_delete_reaper_schedule:
            return
        # Most programs that read settings have no schedule, and need not load the dialect.
        from zq.features.archive.model import ChoreSchedule
        from zq.features.crons.model import InvalidSchedule

        try:
            ChoreSchedule(self.queue_ti_delete_reaper_schedule)
        except InvalidSchedule as error:
            raise ConfigError(f"--queue-ti-delete-reaper-schedule: {error}") from None


SETTINGS = ArchiveSettings
