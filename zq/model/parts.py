"""Many things in parts, each small enough for one transaction or one request."""

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")


def in_parts(things: Iterable[T], weight: Callable[[T], int], most: int) -> Iterator[list[T]]:
    """Things in their order, in parts of at most so much weight; a heavier thing alone."""
    part: list[T] = []
    total = 0
    for thing in things:
        more = weight(thing)
        if part and total + more > most:
            yield part
            part, total = [], 0
        part.append(thing)
        total += more
    if part:
        yield part
