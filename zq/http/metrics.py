"""What a metric is, and what a scrape has read. Rooms have theirs in `metrics.py`."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from heapq import nlargest
from typing import Literal, NamedTuple, Protocol, TypeVar

from zq.engine.subscribers.figures import Histogram
from zq.engine.subscribers.tallies import QueueTallies
from zq.model.lifecycle import Status
from zq.service.admin import ServerFigures

F = TypeVar("F")

REST = "*"
"""The label of all others together. Neither a queue nor a budget can have this name."""


@dataclass(frozen=True)
class Scrape:
    """The numbers of one moment. Times are in milliseconds since the epoch."""

    now: int
    figures: ServerFigures
    jobs: Mapping[tuple[str, Status], int]
    """By queue. `REST` stands for all queues without a label of their own."""
    oldest_ready: Mapping[str, int]
    refused: Mapping[str, int]
    connections: int
    accepted: int
    body_bytes: int
    answer_bytes: int
    lag: Histogram
    tallies: QueueTallies
    dropped_lines: int
    of_rooms: Mapping[type, object]
    """The figures that rooms have read, by their class."""

    def __getitem__(self, kind: type[F]) -> F:
        """The figures of one room, by their class."""
        found = self.of_rooms[kind]
        assert isinstance(found, kind)
        return found

    def ages(self) -> Iterator[tuple[str, float]]:
        """How many seconds ago the longest waiting job of each queue became ready."""
        for queue, ready_at in self.oldest_ready.items():
            yield queue, max(self.now - ready_at, 0) / 1000


class FigureReader(Protocol):
    """Reads the figures of one room for each scrape. It is made of `ApiParts`."""

    async def read(self) -> object:
        """The figures of this moment, of a class of their own. Raises `ReadTimeout`."""


class LabelledNames:
    """Names with a label of their own. They keep it as long as they exist."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._kept: list[str] = []

    def of(self, sizes: Mapping[str, int]) -> list[str]:
        """The names with a label. Free labels go to the largest names without one."""
        self._kept = [name for name in self._kept if name in sizes]
        without = sizes.keys() - set(self._kept)
        free = self._most - len(self._kept)
        self._kept += nlargest(free, without, key=lambda name: (sizes[name], name))
        return self._kept


Values = Iterable[tuple[tuple[str, ...], float]]
"""Pairs of label values and a number."""


class TimesByQueue(NamedTuple):
    """Times by the names of queues, counted by their powers of two as in a trend."""

    rows: Iterable[tuple[str, Mapping[int, int]]]


class Metric(NamedTuple):
    """One row of the table. `read` takes its values from a scrape."""

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    help: str
    read: Callable[[Scrape], Values | Histogram | TimesByQueue]
    labels: tuple[str, ...] = ()
    door: str = ""
    """The metric is there while this door is open; without a name it always is."""


def one(value: float) -> Values:
    """The value of a metric without labels."""
    return [((), value)]


def markdown(metrics: Iterable[Metric]) -> str:
    """A table for the documents."""
    rows = ["| Metric | Kind | Labels | Meaning |", "|---|---|---|---|"]
    for metric in metrics:
        labels = ", ".join(f"`{label}`" for label in metric.labels)
        rows.append(f"| `{metric.name}` | {metric.kind} | {labels} | {metric.help} |")
    return "\n".join(rows)
