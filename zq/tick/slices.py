"""A long transaction in slices: between two slices the event loop runs other tasks.

A function that runs in slices is a generator: see `zq.store.api.Sliced`.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import Any, TypeVar

import msgspec

from zq.model.commands import (
    AnyCommand,
    Claim,
    Clear,
    Extend,
    Extended,
    Fail,
    Release,
    Return,
    Settled,
    Succeed,
)
from zq.model.parts import in_parts
from zq.store.api import Sliced, exhaust

T = TypeVar("T")

ABOUT_MANY = frozenset((Succeed, Extend, Release, Return))

SLICE_ROWS = 512
"""The rows of one slice: about 2 to 4 ms of work."""

FAILURE_ROWS = 4
"""A failure costs as much as this many successes, since it also writes a record."""

WEIGHTS: dict[type, int] = {Fail: FAILURE_ROWS, Clear: SLICE_ROWS + 1}
"""The weights of commands that do not concern many jobs and cost more than a row."""


def by_slices(
    phase: Callable[[Any, Sequence[Any]], list[object] | Sliced[list[object]]],
) -> Callable[[Any, Sequence[Any]], Sliced[list[object]]]:
    """A phase of the tick that gets its commands a slice at a time. It may run in slices itself.

    All commands of a tick waited together, and no two concern the same job. So the phase may get
    them in groups, and a large command in parts. Its jobs regain their unique keys when all of it
    is done.
    """

    def sliced(work: Any, commands: Sequence[Any]) -> Sliced[list[object]]:
        if sum(map(_weight, commands)) <= SLICE_ROWS:
            answers = yield from _in_slices(phase(work, commands))
            yield from work.regain_keys(SLICE_ROWS)
            return answers
        parts = [_parts(command) for command in commands]
        replies: list[object] = []
        for group in in_parts(chain.from_iterable(parts), _weight, SLICE_ROWS):
            if any(isinstance(command, Clear) for command in group):
                replies += yield partial(exhaust, _in_slices(phase(work, group)))
            else:
                replies += yield from _in_slices(phase(work, group))
                yield None
        yield from work.regain_keys(SLICE_ROWS)
        each = iter(replies)
        return [_merged([next(each) for _ in some]) for some in parts]

    return sliced


def _in_slices(answers: list[object] | Sliced[list[object]]) -> Sliced[list[object]]:
    return answers if isinstance(answers, list) else (yield from answers)


def claim_parts(claim: Claim, most: int) -> list[Claim]:
    """A claim as several claims of about `most` jobs, in which every holder has its share.

    Idle places come first. A claim with a limit of bytes stays whole, since the limit counts for
    all of it.
    """
    weighed = any(terms.most_bytes is not None for terms in (claim.terms or {}).values())
    if weighed or claim.limit <= most:
        return [claim]
    courses = claim.credits[: claim.idle], claim.credits[claim.idle :]
    return [
        msgspec.structs.replace(claim, credits=part, idle=0)
        for course in courses
        for part in _course_parts(course, most)
    ]


def _course_parts(credits: Sequence[tuple[int, int]], most: int) -> Iterator[list[tuple[int, int]]]:
    count = -(-sum([credit for _, credit in credits]) // most)
    for part in range(count):
        shares = [(holder, _share(credit, part, count)) for holder, credit in credits]
        yield [(holder, share) for holder, share in shares if share]


def _share(credit: int, part: int, count: int) -> int:
    # The first parts have the larger shares: if jobs run out, all holders have had as many.
    return (credit + count - 1 - part) // count


def _weight(command: AnyCommand) -> int:
    # Compare types directly: `isinstance` costs ten times as much for a Struct.
    kind = type(command)
    return len(command.keys) if kind in ABOUT_MANY else WEIGHTS.get(kind, 1)  # type: ignore[attr-defined]


def _parts(command: AnyCommand) -> list[AnyCommand]:
    """A command about many jobs as several commands about fewer."""
    if not isinstance(command, Succeed | Extend | Release | Return):
        return [command]
    keys = command.keys
    if len(keys) <= SLICE_ROWS:
        return [command]
    return [
        _part(command, keys[start : start + SLICE_ROWS])
        for start in range(0, len(keys), SLICE_ROWS)
    ]


def _part(command: Succeed | Extend | Release | Return, keys: Sequence[int]) -> AnyCommand:
    match command:
        case Succeed():
            said = None if command.said is None else _restricted(command.said, keys)
            return msgspec.structs.replace(command, keys=keys, said=said)
        case Return():
            leases = None if command.leases is None else _restricted(command.leases, keys)
            stalled = command.stalled.intersection(keys)
            return msgspec.structs.replace(command, keys=keys, stalled=stalled, leases=leases)
        case _:
            leases = _restricted(command.leases, keys)
            return msgspec.structs.replace(command, keys=keys, leases=leases)


def _restricted(by_key: Mapping[int, T], keys: Sequence[int]) -> dict[int, T]:
    return {key: by_key[key] for key in keys if key in by_key}


def _merged(replies: Sequence[object]) -> object:
    """The replies to the parts of one command, as one reply."""
    first = replies[0]
    if len(replies) == 1 or first is None:
        return first
    if isinstance(first, Extended):
        refused = _union([reply.refused for reply in replies if isinstance(reply, Extended)])
        return Extended(refused, first.until)
    return _union([reply for reply in replies if isinstance(reply, Settled)])


def _union(replies: Sequence[Settled]) -> Settled:
    return Settled(
        frozenset[int]().union(*[reply.missing for reply in replies]),
        frozenset[int]().union(*[reply.stale for reply in replies]),
    )
