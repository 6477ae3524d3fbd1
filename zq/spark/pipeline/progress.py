"""The progress of a run of the pipeline, in lines for a terminal or a log."""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from pyspark import SparkContext, SparkStageInfo

EVERY_S = 0.5
BAR = 20


@dataclass
class RunStep:
    """One step while it runs. The line that stays shows `result`."""

    name: str
    result: str = ""
    started: float = field(default_factory=time.monotonic)
    seconds: float = 0.0


class RunProgress:
    """A line for each finished step and, with `live`, a line that changes meanwhile.

    `say` writes a line that stays. `live` writes a line that the next one replaces.
    """

    def __init__(
        self, say: Callable[[str], None], live: Callable[[str], None] | None = None
    ) -> None:
        self._say = say
        self._live = live
        self.steps: list[RunStep] = []

    def say(self, text: str) -> None:
        self._say(text)

    @contextmanager
    def step(self, name: str, context: SparkContext) -> Iterator[RunStep]:
        step = RunStep(name)
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

    def _watch(self, step: RunStep, context: SparkContext, stop: threading.Event) -> None:
        tracker = context.statusTracker()
        while not stop.wait(EVERY_S):
            found = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
            stages = [info for info in found if info]
            took = time.monotonic() - step.started
            if self._live is not None:
                self._live(f"{step.name:<9} {took:7.1f} s  {_how_far(stages)}".rstrip())


def _how_far(stages: Sequence[SparkStageInfo]) -> str:
    """A bar of the tasks of the stages that run: done, at work and to come."""
    tasks = sum(stage.numTasks for stage in stages)
    if not tasks:
        return ""
    done = sum(stage.numCompletedTasks for stage in stages)
    busy = sum(stage.numActiveTasks for stage in stages)
    full, part = BAR * done // tasks, -(-BAR * busy // tasks)
    bar = ("=" * full + "-" * part)[:BAR].ljust(BAR)
    return f"[{bar}] {done} of {tasks} tasks, {busy} at work"
