"""What a start does: jobs that streams held are returned, and the identity is read."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from functools import cache
from typing import Any

import msgspec

from zq.model.clock import Clock, SteadyClock, SteadyMark, SystemClock
from zq.model.ids import SLOTS
from zq.model.leasing import DiedStream, Residents
from zq.model.lifecycle import Status
from zq.model.log import HISTORY_LOG, Bounds
from zq.rooms import parts
from zq.store.api import FoundAtStart, Recovery
from zq.store.identity import former_in
from zq.store.postgres.pipeline import Pipeline
from zq.store.postgres.sharing import Memory
from zq.store.postgres.transaction import Columns, PostgresTransaction


@cache
def recoveries() -> list[Recovery]:
    """The parts of all rooms in a start."""
    return parts("store", "RECOVERY", Recovery)


def recover(
    pipeline: Pipeline,
    columns: Columns,
    history: Bounds | None = None,
    slot: int = 0,
    clock: Clock | None = None,
    *,
    off_counts: bool = True,
    name: str = "",
    memory: Memory | None = None,
) -> tuple[FoundAtStart, int]:
    """Return the jobs that streams held when the server of this slot stopped.

    Returns what was found, and the number of this start.

    The jobs keep their attempts, ids and places. A `history` has these bounds from now on. Steady
    time goes on by this `clock`; over a reboot, if the time in which the machine was off counts.
    The server is listed by its `name`.

    Without a `memory`, no other server has the database, so the jobs of all are returned.
    Otherwise those of servers that have died are, and steady time is that of the others.
    """
    clock = clock or SystemClock()
    tx = PostgresTransaction(pipeline, columns, 0, memory)
    tx.begin()
    try:
        tx.version()
        found = _recover(tx, history, slot, clock, off_counts, name)
        tx.commit()
        return found
    except BaseException:
        tx.roll_back()
        raise


def recover_other(
    pipeline: Pipeline,
    columns: Columns,
    slot: int,
    start: int,
    memory: Memory,
    steady: SteadyClock,
) -> list[str] | None:
    """Return the jobs of another server that has died. Return their queues.

    None if it is alive after all, or has been recovered already.
    """
    tx = PostgresTransaction(pipeline, columns, 0, memory)
    tx.begin()
    try:
        tx.version()
        is_dead = tx.value("lock_slot", slot=slot) and (slot, start) in [
            (other, began) for other, began, _ in tx.rows_of("read_servers")
        ]
        left = _end_servers(tx, [slot], steady, claims=False) if is_dead else []
        tx.commit()
        if not is_dead:
            return None
        memory.recovered()
        return sorted({queue for _, queue in left})
    except BaseException:
        tx.roll_back()
        raise


def note_clock(pipeline: Pipeline, columns: Columns, steady: SteadyClock) -> None:
    """Note the steady time, so that the next start knows how far it has come."""
    _note_clock(PostgresTransaction(pipeline, columns, 0), steady)


def _recover(
    tx: PostgresTransaction,
    history: Bounds | None,
    slot: int,
    clock: Clock,
    off_counts: bool,
    name: str,
) -> tuple[FoundAtStart, int]:
    meta: dict[str, str] = dict(tx.rows_of("read_meta"))
    others = _others(tx, slot)
    mark = _mark_of(others, clock) or _decoded(meta, "clock", SteadyMark)
    steady = SteadyClock(clock, mark, off_counts=off_counts)
    died: list[DiedStream] = []
    residents = Residents(None, ())
    if tx.is_alone:
        residents = _decoded(meta, "residents", Residents) or residents
        died = _died(tx, residents, clock.boot)
    begun = frozenset(key for stream in died for key in stream.begun)
    ended = [each for each in range(SLOTS) if each not in others]
    held = _end_servers(tx, ended, steady, begun, claims=not others)
    claimed = tx.value("count_claimed" if tx.is_alone else "count_claimed_by_claimants")
    if history is not None:
        bounds = {"age_ms": history.age_ms, "records": history.records, "bytes": history.bytes}
        tx.run("set_bounds", log=HISTORY_LOG, **bounds)
    highest = tx.value("highest_key")
    tx.write("forget_ticks")
    _note_clock(tx, steady)
    start = int(tx.value("count_start"))
    tx.write("enter_server", slot=slot, start=start, name=name, steady=steady.read()[1])
    found = FoundAtStart(
        epoch=meta["epoch"],
        id_suffix=meta["id_suffix"],
        former_suffixes=former_in(meta),
        last_key=max(int(meta["high_water"]), highest),
        returned=len(held),
        claimed=claimed - len(begun),
        died=died,
        last_holder=max((stream.holder for stream in residents.streams), default=0),
        deadlines=tx.ask_deadlines()(),
        logged=tx.rows_of("extent", log=HISTORY_LOG)[0][2],
        found={name: tx.value(name) for room in recoveries() for name in room.found},
        steady=steady,
    )
    return found, start


def _others(tx: PostgresTransaction, slot: int) -> dict[int, int]:
    """The slots of other servers that are alive, with the steady time of each.

    The locks of all others are held until the end of the transaction, so that nobody joins there.
    """
    return {
        other: steady
        for other, _, steady in tx.rows_of("read_servers")
        if not tx.is_alone and other != slot and not tx.value("lock_slot", slot=other)
    }


def _mark_of(others: Mapping[int, int], clock: Clock) -> SteadyMark | None:
    """The steady time of servers that are alive, as a mark for the clock of this machine."""
    if not others:
        return None
    steady, wall = max(others.values()), clock.now_ms()
    return SteadyMark(steady - wall, steady, clock.boot, clock.elapsed_ms())


def _end_servers(
    tx: PostgresTransaction,
    slots: Sequence[int],
    steady: SteadyClock,
    begun: Collection[int] = (),
    *,
    claims: bool,
) -> list[tuple[int, str]]:
    """Return the jobs that the servers of some slots held, but for those `begun`, and forget these.

    Return the jobs, as keys and queues. With `claims`, those of claimants are returned too if their
    queues have it so: no server is alive that may have given them out.
    """
    left = tx.pairs("read_left_in_flight", slots=slots, claims=claims)
    held = [each for each in left if each[0] not in begun]
    _give_back(tx, held, steady)
    for room in recoveries():
        for name in room.begin:
            tx.run(name)
    tx.write("forget_servers", slots=slots)
    tx.write("forget_mail", slots=slots)
    tx.note_memory()
    return held


def _decoded(meta: Mapping[str, str], name: str, type: Any) -> Any:
    """A value of the table `meta`; None if there is none, or if it cannot be read."""
    with suppress(msgspec.MsgspecError, KeyError):
        return msgspec.json.decode(meta[name], type=type)
    return None


def _note_clock(tx: PostgresTransaction, steady: SteadyClock) -> None:
    steady.read()
    mark = steady.mark()
    tx.run("note_clock", mark=mark)
    steady.stored(mark)


def _died(tx: PostgresTransaction, residents: Residents, boot: str | None) -> list[DiedStream]:
    """The streams that have died with jobs, while the machine went on."""
    if residents.boot is None or residents.boot != boot:
        return []
    died: list[DiedStream] = []
    for holder, stall_limit, concurrency in residents.streams:
        if begun := tx.keys("read_begun", holder=holder, concurrency=concurrency):
            died.append(DiedStream(holder, stall_limit, begun))
    return died


def _give_back(
    tx: PostgresTransaction, held: Sequence[tuple[int, str]], steady: SteadyClock
) -> None:
    """Return jobs in flight, given by their keys and queues."""
    if not held:
        return
    keys = [key for key, _ in held]
    tx.run("give_back_all", keys=keys)
    tx.run("restore_locks", keys=keys)
    groups = tx.rows_of("groups_of", keys=keys)
    regrouped = [
        *tx.keys("shut_groups_telling", groups=groups),
        *tx.keys("open_groups_telling", groups=groups),
    ]
    now, _ = steady.read()
    tx.run("name_lines", keys=keys, now=now, ahead=steady.ahead)
    tx.run("enter_lines", keys=keys, now=now, ahead=steady.ahead)
    tx.run("refresh_lines", lines=tx.keys("lines_of_jobs", keys=[*keys, *regrouped]))
    for room in recoveries():
        for name in room.returned:
            tx.run(name, keys=keys)
    tx.count(
        [
            (queue, status, n * sign)
            for queue, n in Counter(queue for _, queue in held).items()
            for status, sign in ((Status.IN_FLIGHT, -1), (Status.READY, 1))
        ]
    )
