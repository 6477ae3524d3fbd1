"""Asks jq what happens to jobs in batches: rules are checked on new payloads, and run from a host.

The two programs of a rule see `$existing` and `$new`, and null as their input. They run inside a
program of ours, which needs one call for any number of jobs. `check` tries a rule on each new
payload, on both sides. `chain` folds one payload after the other into a host. Payloads come out as
text from jq, so a number that no program has changed keeps all its digits.
"""

import asyncio
import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec

from zq.engine.inbox import PayloadCheck
from zq.engine.jq.lane import JqLane, Overtime
from zq.features.batches.model import BatchRule
from zq.features.batches.model_jobs import HostPlace, batch_of
from zq.model.commands import AnyCommand, Enqueue
from zq.model.errors import FilterAborted, FilterNotStarted, Unprocessable, ZqError
from zq.model.job import JobRecord, NewJob
from zq.model.payload import MAX_DEPTH, has_long_integer, nests_too_deeply
from zq.model.reach import Reach

Wrap = Callable[[Enqueue], AnyCommand]


class FoldRequest:
    """One enqueue, and the future of its answer."""

    def __init__(
        self,
        keys: Sequence[int],
        jobs: Sequence[NewJob],
        now: int,
        size: int,
        reach: Reach,
        wrap: Wrap | None = None,
    ) -> None:
        """`wrap` makes another command around the planned enqueue, if it is given."""
        self.keys, self.jobs, self.now, self.size, self.reach = keys, jobs, now, size, reach
        self.wrap = wrap
        self.reply: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self.copies: frozenset[int] = frozenset()
        """The indexes of jobs that are copies by name. They neither fold nor become hosts."""
        self.is_checked = False
        """True if the rules in the request were tried on its payloads."""
        self.is_held = True
        """True if the inbox counts its jobs as waiting elsewhere."""
        self.lane: object = None
        """The lane that will answer it."""
        self.tries = 0
        self.deadline: float | None = None
        """How long it may wait in the slower lane, by the event loop's clock in seconds."""
        self.ruled = [
            (index, rule) for index, job in enumerate(jobs) if (rule := batch_of(job)) is not None
        ]
        """The jobs with a rule, by index."""
        self.members: dict[str, list[int]] = {}
        """The indexes, by batch, of the jobs that may fold into its host or become it."""
        for index, rule in self.ruled:
            ready_at = jobs[index].ready_at
            if ready_at is None or ready_at <= now:
                self.members.setdefault(rule.key, []).append(index)

    def answer(self, reply: object) -> None:
        """Answer the request, unless nobody waits any more."""
        if not self.reply.done():
            self.reply.set_result(reply)

    def refusal(self, index: int, text: str) -> Unprocessable:
        """The error that refuses the request for one of its jobs."""
        error = Unprocessable(text)
        return error if len(self.jobs) == 1 else error.about(index)


class Host:
    """The host of a batch as it will be after all plans so far."""

    def __init__(self, place: HostPlace, rule: BatchRule, queue: str, payload: str) -> None:
        self.place, self.rule, self.queue, self.payload = place, rule, queue, payload

    @property
    def key(self) -> int:
        return self.place.host

    def copy(self) -> "Host":
        """A copy for changes that may not be carried out."""
        return Host(self.place, self.rule, self.queue, self.payload)


def new_host(key: int, job: NewJob) -> Host:
    """A new job as a host."""
    rule = batch_of(job)
    assert rule is not None
    return Host(HostPlace(key, 0), rule, job.queue, job.payload)


def stored_host(found: tuple[int, JobRecord] | None) -> Host | None:
    """The host as it is stored, with its payload."""
    if found is None:
        return None
    revision, job = found
    rule = batch_of(job)
    assert rule is not None
    assert job.payload is not None
    return Host(HostPlace(job.key, revision), rule, job.queue, job.payload)


MIB = 1024 * 1024

LONGEST_REASON = 500

_GUARDS = (
    'def halt: error("halt is not available");'
    + ' def halt_error: error("halt_error is not available");'
    + ' def halt_error($code): error("halt_error is not available");'
)
"""This prevents `halt`, which would end our program too."""

_ALONE = _GUARDS + " null as $existing | null as $new |\n"
"""This precedes a single program of a rule. It ends its line, so an error counts lines as the
client does. A program that compiles after it has no surplus bracket, and uses no name of ours."""

_SAY = 'def zq_say: if type == "string" then . else tojson end;'

_CHECK = """
. as $existing | . as $new | null
| [try (first((WHEN
  )) | empty) catch ("when: " + zq_say)] as $zq_fault
| if $zq_fault != [] then $zq_fault[0] else
    try ([limit(2; (FOLD
    ))] | if length == 1 then "" else "fold: it has to give exactly one output" end)
    catch ("fold: " + zq_say)
  end
"""
"""The check of one payload: the fault of the rule, or an empty text."""

_CHAIN = """
.[0] as $zq_host | .[1:] as $zq_new | ($zq_new | length) as $zq_count
| foreach range($zq_count + 1) as $zq_at (["", $zq_host, false];
    if .[2] or $zq_at == $zq_count then .[0] = "" else
      .[1] as $existing | $zq_new[$zq_at] as $new | null
      | if ([try first((WHEN
        )) catch null] | .[0] | not) then ["s", $existing, true]
        else
          (try ["f", [limit(2; (FOLD
          ))]] catch ["e" + zq_say])
          | if .[0] != "f" then [.[0], $existing, false]
            elif (.[1] | length) == 1 then ["f", .[1][0], false]
            else ["eit has to give exactly one output", $existing, false] end
        end
    end;
    if $zq_at == $zq_count then .[1] | tojson elif .[0] == "" then empty else .[0] end)
"""
"""The chain of a host and new payloads. It outputs a text for each payload, up to the first that is
sealed off, and then the host's payload."""

_PLACE = re.compile(r" at line (\d+)")

FOLDED, SEALED = "f", "s"


class Chain(NamedTuple):
    """The verdicts on the first new payloads, and the host's payload after them.

    A verdict is `FOLDED`, `SEALED` (always the last), or "e" and the reason why the fold failed.
    """

    verdicts: list[str]
    payload: str


class TooSlow(Exception):
    """Programs took too long or too much memory. The message says which."""


class JqFolds:
    """Runs the programs of batches in one process. One call runs, the others wait.

    `seconds` limits a call, without its wait for others. `memory` is in bytes of address space.
    """

    def __init__(self, *, seconds: float, memory: int = 256 * MIB) -> None:
        self.seconds = seconds
        self._lane = JqLane(memory, int(seconds) + 1)

    async def compile(self, programs: tuple[str, str]) -> None:
        """Raise `Unprocessable` if one of a rule's programs does not compile."""
        for name, program in zip(("when", "fold"), programs, strict=True):
            if "\0" in program:
                raise Unprocessable(f"batch expression: {name}: it contains a NUL character")
            try:
                source = (_ALONE + program).encode()
            except UnicodeEncodeError:
                raise Unprocessable(f"batch expression: {name}: it is not valid Unicode") from None
            compiles, body = await self._run(source, ())
            if not compiles:
                reason = _PLACE.sub(_up, body.decode())
                raise Unprocessable(f"batch expression: {name}: {reason}")

    async def check(self, programs: tuple[str, str], payloads: Sequence[str]) -> list[str]:
        """The faults of a rule that compiles, tried on each payload; an empty text means none.

        Raises `TooSlow`.
        """
        _, body = await self._run(_texts(*programs)[0], payloads)
        faults: list[str] = []
        for outputs, error in msgspec.json.decode(body):
            fault = outputs[0] if outputs else f"payload: {error}"
            faults.append(fault[:LONGEST_REASON] and f"batch dry-run: {fault[:LONGEST_REASON]}")
        return faults

    async def chain(self, programs: tuple[str, str], host: str, payloads: Sequence[str]) -> Chain:
        """Fold payloads into a host's payload by its rule, in order, until one is sealed off.

        Each payload has been checked with a rule of its own. Raises `TooSlow`.
        """
        row = "[" + ",".join((host, *payloads)) + "]"
        _, body = await self._run(_texts(*programs)[1], (row,))
        ((outputs, error),) = msgspec.json.decode(body)
        if error is not None:
            raise TooSlow(error)
        return Chain([text[:LONGEST_REASON] for text in outputs[:-1]], outputs[-1])

    async def close(self) -> None:
        """End the process."""
        await self._lane.close()

    async def _run(self, source: bytes, rows: Sequence[str]) -> tuple[bool, bytes]:
        try:
            async with asyncio.timeout(None) as limit:
                answer = await self._lane.run(
                    source, rows, limit, seconds=self.seconds, outputs=True
                )
        except Overtime:
            raise TooSlow(f"it took longer than {self.seconds:g} s") from None
        except FilterNotStarted:
            # The program is not at fault, and it may start later.
            raise
        except FilterAborted:
            raise TooSlow("its process ended, most likely for want of memory") from None
        return answer.compiles, answer.body


def _up(place: re.Match[str]) -> str:
    """The place of a fault, counted without the line that precedes the program."""
    return f" at line {int(place[1]) - 1}"


@lru_cache(256)
def _texts(when: str, fold: str) -> tuple[bytes, bytes]:
    """The two programs of a rule inside ours: the one that checks, and the one that folds."""
    return _filled(_CHECK, when, fold), _filled(_CHAIN, when, fold)


def _filled(text: str, when: str, fold: str) -> bytes:
    head, _, rest = text.partition("WHEN")
    middle, _, tail = rest.partition("FOLD")
    return f"{_GUARDS}{_SAY}{head}{when}{middle}{fold}{tail}".encode()


MOST_KNOWN = 1024
"""How many rules are remembered, the last ones that were used."""

MOST_CHAINED = 256
"""The most jobs that one call folds."""

MOST_CHAINED_BYTES = 4 * 1024 * 1024

Programs = tuple[str, str]
"""The two programs of a rule: `when` and `fold`."""


class Evaluator:
    """Runs the rules of batches in one process, one call at a time."""

    def __init__(self, folds: JqFolds, max_payload: int, checks: Sequence[PayloadCheck]) -> None:
        """`max_payload` is the largest payload that a fold may make, in bytes.

        It has to pass the `checks` too.
        """
        self._folds = folds
        self._checks = checks
        self._max_payload = max_payload
        self._compiled: dict[Programs, None] = {}

    async def check(self, programs: Programs, payloads: Sequence[str]) -> list[str]:
        """The faults of a rule, tried with each payload on both sides; an empty text means none.

        Raises `TooSlow` if a single payload takes too long.
        """
        try:
            await self._compile(programs)
        except Unprocessable as error:
            return [error.message] * len(payloads)
        try:
            return await self._folds.check(programs, payloads)
        except TooSlow:
            if len(payloads) == 1:
                raise
        return [fault for payload in payloads for fault in await self.check(programs, [payload])]

    async def fold(
        self, host: Host | None, jobs: Sequence[tuple[int, NewJob]]
    ) -> list["Host | str"]:
        """Fold jobs, given with their keys, one after the other into a host, or make them hosts.

        The result has, for each job, the host that it folds into (itself if it becomes a host), or
        the reason why it cannot be folded. Each host has its final payload. If the result is
        shorter than `jobs`, the next job takes too long.
        """
        ends: list[Host | str] = []
        while len(ends) < len(jobs):
            if host is None:
                key, job = jobs[len(ends)]
                host = new_host(key, job)
                ends.append(host)
                continue
            rest = _some([job.payload for _, job in jobs[len(ends) :]])
            try:
                verdicts = await self._chain(host, rest)
            except TooSlow:
                break
            for verdict in verdicts:
                if verdict == SEALED:
                    host = None
                else:
                    ends.append(host if verdict == FOLDED and host is not None else verdict[1:])
        return ends

    async def _chain(self, host: Host, payloads: Sequence[str]) -> list[str]:
        """The verdicts on the first payloads, at least one. The host's payload includes these."""
        try:
            chain = await self._folds.chain(programs_of(host.rule), host.payload, payloads)
        except TooSlow:
            if len(payloads) == 1:
                raise
            return await self._chain(host, payloads[:1])
        fault = self._fault(chain) or await self._misfit(host.queue, chain)
        if fault is None:
            host.payload = chain.payload
            return chain.verdicts
        if len(payloads) == 1:
            return [f"e{fault}"]
        return await self._chain(host, payloads[: len(payloads) // 2])

    def _fault(self, chain: Chain) -> str | None:
        """Why the payload that a fold has made cannot be stored."""
        if FOLDED not in chain.verdicts:
            return None
        size = len(chain.payload.encode())
        if size > self._max_payload:
            return (
                f"the payload would have {size} bytes, but at most {self._max_payload} are allowed:"
                " have `when` bound it, or raise --max-payload"
            )
        if nests_too_deeply(chain.payload):
            return f"the payload would nest deeper than {MAX_DEPTH}"
        if has_long_integer(chain.payload.encode()):
            return "the payload would hold an integer outside of -2^63 and 2^64-1"
        return None

    async def _misfit(self, queue: str, chain: Chain) -> str | None:
        """Why a queue does not take the payload that a fold has made."""
        if FOLDED in chain.verdicts:
            try:
                for check in self._checks:
                    if check.in_use:
                        await check.require([(queue, chain.payload)])
            except ZqError as error:
                return error.message
        return None

    async def _compile(self, programs: Programs) -> None:
        if programs not in self._compiled:
            await self._folds.compile(programs)
        self._compiled.pop(programs, None)
        self._compiled[programs] = None
        if len(self._compiled) > MOST_KNOWN:
            del self._compiled[next(iter(self._compiled))]


class RuleUse(NamedTuple):
    """A job that comes with a rule: its request, and its index there."""

    request: FoldRequest
    place: int


def by_rule(requests: Sequence[FoldRequest]) -> dict[Programs, list[RuleUse]]:
    """The jobs of some requests that come with a rule, by the rule's programs."""
    found: dict[Programs, list[RuleUse]] = {}
    for request in requests:
        for index, rule in request.ruled:
            found.setdefault(programs_of(rule), []).append(RuleUse(request, index))
    return found


def programs_of(rule: BatchRule) -> Programs:
    return rule.when, rule.fold


def _some(payloads: Sequence[str]) -> Sequence[str]:
    """The first payloads, as many as one call takes: at least one, however large."""
    total = 0
    for index, payload in enumerate(payloads[:MOST_CHAINED]):
        total += len(payload)
        if total > MOST_CHAINED_BYTES and index:
            return payloads[:index]
    return payloads[:MOST_CHAINED]
