"""The program `zq`, which kills itself at a named point: the n-th time that it comes there.

`DIE_AT=POINT:N python -m outbox.mortal relay …`, and so on with `push` and `serve`.
"""

import functools
import inspect
import os
import signal
from collections.abc import Callable
from typing import Any

from zq.cli.group import main
from zq.features.producers import tick
from zq.features.producers.client import NumberedJobs
from zq.features.producers.model import Producer
from zq.outbox import postgres, relay, sqlite
from zq.outbox.numbering import RowNumbers
from zq.outbox.postgres import PostgresSource
from zq.outbox.sqlite import SqliteSource
from zq.store.sqlite.store import SqliteStore

Concerns = Callable[..., bool]

_left = 0
_armed = False


def die() -> None:
    global _left
    _left -= 1
    if _left == 0:
        os.kill(os.getpid(), signal.SIGKILL)


def mortal(owner: type, name: str, *, before: bool, concerns: Concerns) -> None:
    """Have a call die before it, or after it. It counts if it concerns the point."""
    whole = getattr(owner, name)

    @functools.wraps(whole)
    def calling(*args: Any, **named: Any) -> Any:
        if not inspect.iscoroutinefunction(whole):
            return around(lambda: whole(*args, **named), args)
        return awaiting(args, named)

    def around(call: Callable[[], Any], args: tuple[Any, ...]) -> Any:
        if before and concerns(*args):
            die()
        result = call()
        if not before and concerns(*args):
            die()
        return result

    async def awaiting(args: tuple[Any, ...], named: dict[str, Any]) -> Any:
        if before and concerns(*args):
            die()
        result = await whole(*args, **named)
        if not before and concerns(*args):
            die()
        return result

    setattr(owner, name, calling)


def _always(*_: Any) -> bool:
    return True


def _is_armed(*_: Any) -> bool:
    return _armed


def _has_jobs(_: Any, first: int, jobs: Any, *__: Any) -> bool:
    return len(jobs) > 0


def _takes_over(_: Any, first: int, jobs: Any, *__: Any) -> bool:
    return not jobs and first == 1


def _renews(_: Any, lane: Any, to: Any, *__: Any) -> bool:
    return bool(lane.epoch != to.epoch)


def _numbers(_: Any, lane: Any, to: Any, *__: Any) -> bool:
    return bool(lane.epoch == to.epoch)


def _arm_server() -> None:
    """From when the transaction has jobs of a producer on."""
    learn = tick.ProducerBook.learn

    def learning(self: Any, producer: Producer) -> None:
        global _armed
        _armed = producer.last > 0
        learn(self, producer)

    tick.ProducerBook.learn = learning  # type: ignore[method-assign]


SOURCES = (SqliteSource, PostgresSource)

RELAY: dict[str, tuple[tuple[type, ...], str, bool, Concerns]] = {
    "relay has read rows": (SOURCES, "move", True, _numbers),
    "relay has numbered rows": (SOURCES, "move", False, _numbers),
    "relay has sent rows": (SOURCES, "delete", True, _always),
    "relay has deleted rows": (SOURCES, "delete", False, _always),
    "relay is refused a row": ((RowNumbers,), "refuse", True, _always),
    "relay takes over": ((NumberedJobs,), "store", True, _takes_over),
    "relay has taken over": ((NumberedJobs,), "store", False, _takes_over),
    "relay notes the epoch": (SOURCES, "move", True, _renews),
    "relay has noted the epoch": (SOURCES, "move", False, _renews),
}
PRODUCER: dict[str, tuple[tuple[type, ...], str, bool, Concerns]] = {
    "producer sends jobs": ((NumberedJobs,), "store", True, _has_jobs),
    "producer has sent jobs": ((NumberedJobs,), "store", False, _has_jobs),
}
SERVER: dict[str, tuple[tuple[type, ...], str, bool, Concerns]] = {
    "server stores numbers": ((tick.ProducerBook,), "write", True, _is_armed),
    "server has not committed": ((tick.ProducerBook,), "write", False, _is_armed),
    "server has not flushed": ((SqliteStore,), "_land", True, _is_armed),
    "server has not answered": ((SqliteStore,), "_land", False, _is_armed),
}


def prepare(point: str, times: int) -> None:
    global _left
    _left = times
    owners, name, before, concerns = (RELAY | PRODUCER | SERVER)[point]
    for owner in owners:
        mortal(owner, name, before=before, concerns=concerns)
    if point in SERVER:
        _arm_server()


if __name__ == "__main__":
    if "DIE_AT" in os.environ:
        at, _, times = os.environ["DIE_AT"].rpartition(":")
        prepare(at, int(times))
    relay.MOST_AT_ONCE = 5
    vars(sqlite)["MOST_ROWS"] = vars(postgres)["MOST_ROWS"] = 20
    main()
