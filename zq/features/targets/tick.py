"""What targets of queues bring to the tick."""

from typing import get_args

from zq.features.targets.tick_fan_out import AnyTargetChange, change_targets
from zq.features.targets.tick_spreading import enqueue, refusal
from zq.features.targets.tick_twins import store_twins
from zq.tick.hooks import FanOut, Hooks, Options
from zq.tick.phases import Phase, Stage
from zq.tick.work import UnitOfWork


def hooks(options: Options) -> Hooks[UnitOfWork]:
    """The targets' part in a tick: jobs that come to a queue with targets go to these."""
    return Hooks(fan_out=FanOut(enqueue, store_twins, refusal))


PHASES = (Phase(Stage.CHANGE, change_targets, get_args(AnyTargetChange)),)
