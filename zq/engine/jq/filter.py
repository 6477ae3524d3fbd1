"""jq programs over payloads, in processes of their own. `child.py` says how they are confined.

The jq library holds the GIL while a program runs, and a program cannot be stopped. So every call
first gets a short time in one process. A program that needs more continues in a second process, and
from then on begins there. Thus slow programs wait for each other, and quick ones do not wait for
them.
"""

import asyncio
import hashlib
import math
from collections.abc import Sequence

from zq.engine.jq.lane import JqAnswer, JqLane, Overtime
from zq.model.errors import FilterAborted, InvalidFilter

MIB = 1024 * 1024

QUICK = 1 / 8
"""A call in the first process gets this part of its time-out, and as much again for every
`QUICK_BYTES` of payloads."""

QUICK_BYTES = 4 * MIB
MOST_QUICK = 1 / 2

MOST_KNOWN = 1024
"""How many programs are remembered, the last ones that were used."""


class JqFilter:
    """Decides which payloads a jq program matches. One call of each kind runs, the others wait.

    `timeout` (seconds) limits a call, including its wait for others. `memory` limits the address
    space of a process in bytes, of which the interpreter needs 15 MiB. `rows` is the most payloads
    of a call.
    """

    def __init__(self, *, timeout: float, memory: int = 256 * MIB, rows: int = 1000) -> None:
        self._timeout = timeout
        self._rows = rows
        self._quick = JqLane(memory, math.ceil(timeout))
        self._slow = JqLane(memory, math.ceil(timeout))
        self._known: dict[bytes, bool] = {}
        """Programs by the digests of their texts: true for slow ones."""

    async def check(self, program: str) -> None:
        """Raise InvalidFilter with the fault and its place if `program` does not compile."""
        await self._ask(program, ())

    async def matches(self, program: str, payloads: Sequence[str]) -> list[bool]:
        """For each of `payloads`, which are JSON texts: true if `program` matches it.

        It matches if any output is neither null nor false. A runtime error ends the outputs of that
        payload: those before it count. A number that the program only compares or passes on keeps
        all its digits; arithmetic is in doubles, exact to 2^53. The environment is empty, there is
        no further input, no module, and local time is UTC.

        Raises InvalidFilter, FilterAborted if the call took too long or too much memory, or
        FiltersBusy if too many wait already.
        """
        if len(payloads) > self._rows:
            raise ValueError(f"{len(payloads)} payloads in a call; {self._rows} are the most")
        verdicts = await self._ask(program, payloads)
        return [verdict == 1 for verdict in verdicts]

    async def close(self) -> None:
        """End the processes. Calls that are under way or waiting raise FilterAborted."""
        await asyncio.gather(self._quick.close(), self._slow.close())

    async def _ask(self, program: str, payloads: Sequence[str]) -> bytes:
        source = _encode(program)
        try:
            async with asyncio.timeout(self._timeout) as limit:
                answer = await self._run(source, payloads, limit)
        except (TimeoutError, Overtime):
            raise FilterAborted(
                f"the filter took longer than {self._timeout:g} s, its wait for other slow filters"
                " included: name the queue, type, status or ids too, make the program cheaper, or"
                " start the server with a longer --filter-timeout"
            ) from None
        if not answer.compiles:
            raise _refusal(answer.body.decode())
        return answer.body

    async def _run(
        self, source: bytes, payloads: Sequence[str], limit: asyncio.Timeout
    ) -> JqAnswer:
        digest = hashlib.blake2b(source, digest_size=16).digest()
        is_slow = self._known.get(digest)
        share = QUICK * (1 + sum(map(len, payloads)) / QUICK_BYTES)
        quickly = self._timeout * min(share, MOST_QUICK)
        if not is_slow:
            try:
                answer = await self._quick.run(
                    source, payloads, limit, seconds=quickly, newcomer=is_slow is None
                )
            except Overtime:
                pass
            except FilterAborted:
                # The program has ended its process, and might do so again.
                self._remember(digest, is_slow=True)
                raise
            else:
                if payloads:
                    # Compiling alone proves nothing.
                    self._remember(digest, is_slow=False)
                return answer
        self._remember(digest, is_slow=True)
        answer = await self._slow.run(source, payloads, limit, seconds=self._timeout)
        self._remember(digest, is_slow=answer.seconds > quickly)
        return answer

    def _remember(self, digest: bytes, *, is_slow: bool) -> None:
        self._known.pop(digest, None)
        self._known[digest] = is_slow
        if len(self._known) > MOST_KNOWN:
            del self._known[next(iter(self._known))]


def _encode(program: str) -> bytes:
    """`program` as bytes for jq: UTF-8 without a NUL, which would cut it short."""
    if "\0" in program:
        raise _refusal("the program contains a NUL character")
    try:
        return program.encode()
    except UnicodeEncodeError:
        raise _refusal("the program is not valid Unicode") from None


def _refusal(reason: str) -> InvalidFilter:
    return InvalidFilter(f"invalid filter: {reason}")
