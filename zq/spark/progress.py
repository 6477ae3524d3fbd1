"""What a run of the pipeline says while it works."""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from pyspark import SparkContext, SparkStageInfo

EVERY_S = 0.5
BAR = 20


@dataclass
class Step:
    """One step while it runs; `result` is for the line that stays."""

    name: str
    result: str = ""
    started: float = field(default_factory=time.monotonic)
    seconds: float = 0.0


class Progress:
    """A line for each finished step and, where `live` is given, one that changes meanwhile.

    `say` writes a line that stays, `live` one that the next replaces.
    """

    def __init__(
        self, say: Callable[[str], None], live: Callable[[str], None] | None = None
    ) -> None:
        self._say = say
        self._live = live
        self.steps: list[Step] = []

    def say(self, text: str) -> None:
        self._say(text)

    @contextmanager
    def step(self, name: str, context: SparkContext) -> Iterator[Step]:
        step = Step(name)
        stop = threading.Event()
        watcher = threading.Thread(target=self._watch, args=(step, context, stop), daemon=True)
        if self._live is not None:
            watcher.start()
        try:
            yield step
        finally:
            stop.set()
            if self._live is not None:
                watcher.join()
                self._live("")
        step.seconds = time.monotonic() - step.started
        self.steps.append(step)
        self._say(f"{step.name:<9} {step.seconds:7.1f} s  {step.result}".rstrip())

    def _watch(self, step: Step, context: SparkContext, stop: threading.Event) -> None:
        tracker = context.statusTracker()
        while not stop.wait(EVERY_S):
            found = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
            stages = [info for info in found if info]
            took = time.monotonic() - step.started
            if self._live is not None:
                self._live(f"{step.name:<9} {took:7.1f} s  {_how_far(stages)}".rstrip())


def _how_far(stages: Sequence[SparkStageInfo]) -> str:
    """A bar of tasks: those that are done, at work and to come, of the stages that run."""
    tasks = sum(stage.numTasks for stage in stages)
    if not tasks:
        return ""
    done = sum(stage.numCompletedTasks for stage in stages)
    busy = sum(stage.numActiveTasks for stage in stages)
    full, part = BAR * done // tasks, -(-BAR * busy // tasks)
    bar = ("=" * full + "-" * part)[:BAR].ljust(BAR)
    return f"[{bar}] {done} of {tasks} tasks, {busy} at work"
