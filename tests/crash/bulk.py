"""Requests about many jobs, whose answer names the jobs that were left unchanged."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, TypeVar

from conformance.client import Reply

from .actors import Actor, outcome
from .history import NEVER, Extend, Outcome, Release, Success, now

KEPT = {"completed_ms": 3_600_000}
"""What a result that is to be seen later needs."""

Asked = TypeVar("Asked", Success, Release, Extend)


class Held(NamedTuple):
    """A job as its holder names it: with the token of its delivery, or 0 for the current one."""

    id: str
    name: str
    lease: int
    result: str = ""


async def succeed_all(actor: Actor, held: Iterable[Held]) -> None:
    """Acknowledge many jobs. What is sent twice counts once."""
    start, jobs = now(), {each.id: each for each in held}
    attempts = {
        id: Success(
            start=start,
            end=NEVER,
            job=each.name,
            outcome=Outcome.UNKNOWN,
            lease=each.lease,
            result=each.result,
        )
        for id, each in jobs.items()
    }
    actor.notebook.try_to(list(attempts.values()))
    items = [_item(each) | _kept(each) for each in jobs.values() if each.lease or each.result]
    ids = [each.id for each in jobs.values() if not (each.lease or each.result)]
    body = {"ids": ids} if ids or not items else {}
    reply = await actor.post("/jobs/success", body | ({"items": items} if items else {}))
    _note(actor, reply, attempts, done=204)


async def release_all(actor: Actor, held: Sequence[Held], delay_ms: int) -> None:
    """Give many jobs back."""
    start = now()
    attempts = {
        each.id: Release(
            start=start, end=NEVER, job=each.name, outcome=Outcome.UNKNOWN, lease=each.lease
        )
        for each in held
    }
    items = [_item(each) for each in held]
    reply = await actor.post("/jobs/release", {"items": items, "delay_ms": delay_ms})
    _note(actor, reply, attempts, done=204)


async def extend_all(actor: Actor, held: Sequence[Held], lease_ms: int) -> None:
    """Ask for more time for many jobs."""
    start = now()
    attempts = {
        each.id: Extend(
            start=start,
            end=NEVER,
            job=each.name,
            outcome=Outcome.UNKNOWN,
            lease=each.lease,
            until=start + lease_ms,
            lease_ms=lease_ms,
        )
        for each in held
    }
    items = [_item(each) for each in held]
    reply = await actor.post("/jobs/extend", {"items": items, "lease_ms": lease_ms})
    if reply is not None:
        until = reply.doc["lease_until"]
        attempts = {id: replace(attempt, until=until) for id, attempt in attempts.items()}
    _note(actor, reply, attempts, done=200)


def _item(each: Held) -> dict[str, Any]:
    return {"id": each.id} | ({"lease": each.lease} if each.lease else {})


def _kept(each: Held) -> dict[str, Any]:
    return {"result": each.result, "retention": KEPT} if each.result else {}


def _note(actor: Actor, reply: Reply | None, attempts: Mapping[str, Asked], done: int) -> None:
    """Write down what has become of each: 422 names those that were left alone."""
    end, result = now(), outcome(reply, done=(done, 422), refused=())
    left: list[str] = []
    if reply is not None and reply.status == 422:
        left = reply.doc["not_found"] + reply.doc.get("stale", [])
        assert set(left) <= attempts.keys(), reply.doc
    for id, attempt in attempts.items():
        one = Outcome.REFUSED if id in left else result
        actor.notebook.add(replace(attempt, end=end, outcome=one))
