"""The settings of the door for topics."""

from dataclasses import dataclass
from typing import Annotated

from zq.setting import SWITCH, RoomSettings, Rule

DOOR = "topics"
"""The name of this door in `--doors`."""


@dataclass(frozen=True, kw_only=True)
class TopicsSettings(RoomSettings):
    """How the door for topics is served."""

    topics_gzip: Annotated[
        bool, Rule(SWITCH, "Take and give compressed bodies (gzip) in the API of topics.")
    ] = False


SETTINGS = TopicsSettings
