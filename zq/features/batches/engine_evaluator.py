"""Asks jq what happens to jobs in batches, and finds the cause of a failure."""

from collections.abc import Sequence
from typing import NamedTuple

from zq.engine.inbox import PayloadCheck
from zq.features.batches.engine_jq import FOLDED, SEALED, Chain, JqFolds, TooSlow
from zq.features.batches.engine_request import FoldRequest, Host, new_host
from zq.features.batches.model import BatchRule
from zq.model.errors import Unprocessable, ZqError
from zq.model.job import NewJob
from zq.model.payload import MAX_DEPTH, has_long_integer, nests_too_deeply

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
    """The programs of a rule."""
    return rule.when, rule.fold


def _some(payloads: Sequence[str]) -> Sequence[str]:
    """The first payloads, as many as one call takes: at least one, however large."""
    total = 0
    for index, payload in enumerate(payloads[:MOST_CHAINED]):
        total += len(payload)
        if total > MOST_CHAINED_BYTES and index:
            return payloads[:index]
    return payloads[:MOST_CHAINED]
