"""A history, sorted for the rules: by job, by stream, by what everyone noticed."""

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from .history import (
    Delivery,
    Enqueue,
    Failure,
    History,
    Inspection,
    JobEvent,
    Kill,
    Listing,
    Outcome,
    Start,
    StreamEnd,
    StreamStart,
    Success,
)

UNFINISHED = ("scheduled", "ready", "in_flight")
NEVER = float("inf")

Settlement = Success | Failure


@dataclass
class Life:
    """Everything that the history tells of one job."""

    name: str
    enqueues: list[Enqueue] = field(default_factory=list)
    deliveries: list[Delivery] = field(default_factory=list)
    successes: list[Success] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)

    def add(self, event: JobEvent) -> None:
        match event:
            case Enqueue():
                self.enqueues.append(event)
            case Delivery():
                self.deliveries.append(event)
            case Success():
                self.successes.append(event)
            case Failure():
                self.failures.append(event)

    @property
    def stored(self) -> Enqueue | None:
        """The enqueue that was answered with success."""
        return next((e for e in self.enqueues if e.outcome is Outcome.OK), None)

    @property
    def settlements(self) -> list[Settlement]:
        """Those that may have had an effect."""
        both: list[Settlement] = [*self.successes, *self.failures]
        return [settlement for settlement in both if settlement.outcome is not Outcome.REFUSED]

    @property
    def accepted(self) -> list[Settlement]:
        """Those that are known to have had an effect."""
        return [s for s in self.settlements if s.outcome is Outcome.OK]

    @property
    def done(self) -> float:
        """When it was answered that the job is over for good."""
        ends = [s.end for s in self.successes if s.outcome is Outcome.OK]
        ends += [f.end for f in self.failures if f.final and f.outcome is Outcome.OK]
        return min(ends, default=NEVER)

    def released(self, delivery: Delivery) -> float:
        """The earliest time at which this delivery may have been settled, by whomever.

        A late one of an earlier delivery counts too: without a token it ends the current one.
        """
        ends = (max(s.start, delivery.start) for s in self.settlements if s.end >= delivery.start)
        return min(ends, default=NEVER)


@dataclass
class World:
    """All lives by name, all streams by number."""

    lives: dict[str, Life] = field(default_factory=dict)
    listings: list[Listing] = field(default_factory=list)
    inspections: list[Inspection] = field(default_factory=list)
    starts: list[Start] = field(default_factory=list)
    kills: list[Kill] = field(default_factory=list)
    streams: dict[int, StreamStart] = field(default_factory=dict)
    hang_ups: dict[int, float] = field(default_factory=dict)
    """When each stream's worker began to hang up."""

    def deliveries_by_stream(self) -> dict[int, list[tuple[Life, Delivery]]]:
        found: dict[int, list[tuple[Life, Delivery]]] = defaultdict(list)
        for life in self.lives.values():
            for delivery in life.deliveries:
                found[delivery.stream].append((life, delivery))
        return found

    def undisturbed(self, queue: str, start: float, end: float) -> bool:
        """Whether no job of a queue can have been claimed and come back unseen meanwhile.

        A job whose frame nobody has read is in flight until its stream ends or the server does.
        """
        if any(start <= kill.start < end + 1 for kill in self.kills):
            return False
        for number, hung_up in self.hang_ups.items():
            stream = self.streams.get(number)
            covers = stream is None or not stream.queues or queue in stream.queues
            if covers and start <= hung_up < end + 1:
                return False
        return True


Rule = Callable[[World], Iterator[str]]


def sort(history: History) -> World:
    world = World()
    for event in history:
        match event:
            case Listing():
                world.listings.append(event)
            case Inspection():
                world.inspections.append(event)
            case Start():
                world.starts.append(event)
            case Kill():
                world.kills.append(event)
            case StreamStart():
                world.streams[event.stream] = event
            case StreamEnd():
                world.hang_ups[event.stream] = event.start
            case _:
                world.lives.setdefault(event.job, Life(event.job)).add(event)
    for life in world.lives.values():
        life.deliveries.sort(key=lambda delivery: (delivery.start, delivery.end))
    return world
