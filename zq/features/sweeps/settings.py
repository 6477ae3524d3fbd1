"""The settings of sweeps."""

from dataclasses import dataclass
from typing import Annotated

from zq.setting import INT, RoomSettings, Rule


@dataclass(frozen=True, kw_only=True)
class SweepSettings(RoomSettings):
    """How many sweeps there may be."""

    max_sweeps: Annotated[
        int, Rule(INT, "Most changes by filter at a time; further ones get 429.", low=1)
    ] = 16


SETTINGS = SweepSettings
