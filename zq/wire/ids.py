"""Ids in requests and answers: their keys, and the ids of jobs that were left unchanged."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple, TypeVar

from zq.model.commands import Settled
from zq.model.errors import JobNotFound, NotInFlight, StaleLease
from zq.model.ids import IdCodec

T = TypeVar("T")


class RefusedIds(NamedTuple):
    """Ids of jobs that were left unchanged: not in flight, or their delivery has ended."""

    not_found: list[str]
    stale: list[str]


NOTHING_REFUSED = RefusedIds([], [])


def key_of(id: str, ids: IdCodec) -> int:
    """The key of a job. Raises `JobNotFound` if the text cannot be an id."""
    key = ids.key(id)
    if key is None:
        raise JobNotFound
    return key


def held_key(id: str, ids: IdCodec) -> int:
    """The key of a job in flight. Raises `NotInFlight` if the text cannot be an id."""
    key = ids.key(id)
    if key is None:
        raise NotInFlight
    return key


def place_of(cursor: str | None, descending: bool, ids: IdCodec) -> int:
    """The key beyond which a page begins. A cursor is a place in text order, not always an id."""
    if cursor is None:
        return 2**63 - 1 if descending else -1
    before, behind = ids.position(cursor)
    return behind if descending else before


class NamedKeys:
    """The keys of the jobs in a request. Some of the ids may belong to no job."""

    def __init__(self, named: Iterable[str], ids: IdCodec) -> None:
        self._keys = {id: ids.key(id) for id in named}
        self.known = [key for key in self._keys.values() if key is not None]

    def with_what(self, said: Mapping[str, T | None]) -> dict[int, T]:
        """The values that came with jobs, by the jobs' keys."""
        found: dict[int, T] = {}
        for id, what in said.items():
            key = self._keys[id]
            if key is not None and what is not None:
                found[key] = what
        return found

    def refused(self, settled: Settled) -> RefusedIds:
        """The ids of jobs that were left unchanged, in the order of the request."""
        if not settled.missing and not settled.stale and len(self.known) == len(self._keys):
            return NOTHING_REFUSED
        pairs = self._keys.items()
        return RefusedIds(
            [id for id, key in pairs if key is None or key in settled.missing],
            [id for id, key in pairs if key in settled.stale],
        )


def raise_refusal(settled: Settled) -> None:
    """Check the result of a request about one job. Raises `StaleLease` or `NotInFlight`."""
    if settled.stale:
        raise StaleLease
    if settled.missing:
        raise NotInFlight
