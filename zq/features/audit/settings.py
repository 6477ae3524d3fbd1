"""The settings of the audit."""

from dataclasses import dataclass
from typing import Annotated

from zq.setting import SWITCH, RoomSettings, Rule


@dataclass(frozen=True, kw_only=True)
class AuditSettings(RoomSettings):
    """True if there is an audit."""

    no_audit: Annotated[bool, Rule(SWITCH, "Keep no record of what operators do.")] = False


SETTINGS = AuditSettings
