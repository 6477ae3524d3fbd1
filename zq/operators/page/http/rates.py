"""How many deliveries a second each stream gets, from one look to the next."""

from collections.abc import Iterable
from typing import NamedTuple

from zq.service.admin import OpenStream


class _Seen(NamedTuple):
    """A stream as the last look saw it. Times are in milliseconds."""

    at: int
    delivered: int
    rate: float


class DeliveryRates:
    """Remembers the streams of the last look."""

    def __init__(self) -> None:
        self._at = -1
        self._seen: dict[tuple[str, int], _Seen] = {}

    def learn(self, workers: Iterable[OpenStream], at: int) -> None:
        """Note what a look has seen. Looking again at the same moment changes nothing."""
        if at == self._at:
            return
        self._at = at
        self._seen = {_name(worker): self._next(worker, at) for worker in workers}

    def of(self, worker: OpenStream) -> float:
        """The rate between the last two looks, or since the stream is open."""
        found = self._seen.get(_name(worker))
        return 0.0 if found is None else found.rate

    def _next(self, worker: OpenStream, at: int) -> _Seen:
        before = self._seen.get(_name(worker), _Seen(worker.since, 0, 0.0))
        if at <= before.at:
            return before
        rate = (worker.delivered - before.delivered) * 1000 / (at - before.at)
        return _Seen(at, worker.delivered, round(rate, 1))


def _name(worker: OpenStream) -> tuple[str, int]:
    return worker.id, worker.since
