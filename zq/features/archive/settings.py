"""The settings of completed and expired jobs."""

from dataclasses import dataclass
from typing import Annotated

from zq.setting import SCHEDULE, RoomSettings, Rule


@dataclass(frozen=True, kw_only=True)
class ArchiveSettings(RoomSettings):
    """When expired jobs go."""

    queue_ti_delete_reaper_schedule: Annotated[
        str,
        Rule(
            SCHEDULE,
            "When expired jobs are deleted before their retention is over, such as `0 3 * * *` or"
            " `@every 1h`. A schedule that was set over HTTP comes first.",
        ),
    ] = ""


SETTINGS = ArchiveSettings
