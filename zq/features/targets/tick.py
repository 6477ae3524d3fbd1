"""What targets of queues bring to the tick."""

from typing import get_args

from zq.features.targets.tick_fan_out import AnyTargetChange, change_targets
from zq.tick.phases import Phase, Stage

PHASES = (Phase(Stage.CHANGE, change_targets, get_args(AnyTargetChange)),)
