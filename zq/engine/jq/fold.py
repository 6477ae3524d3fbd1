"""Folds by jq: the programs of batches, checked on what comes in, and run from a host on.

A rule's two programs see `$existing` and `$new`, and null as their input. They run inside a program
of ours, which needs one trip to the process however many jobs there are: `check` tries a rule on
each new payload, as both sides; `chain` folds one after the other into a host. Payloads come out as
text that jq has written, by which a number that no program has touched keeps all its digits.
"""

import asyncio
import re
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import msgspec

from zq.engine.jq.lane import JqLane, Overtime
from zq.model.errors import FilterAborted, Unprocessable

MIB = 1024 * 1024

LONGEST_REASON = 500

_GUARDS = (
    'def halt: error("halt is not available");'
    + ' def halt_error: error("halt_error is not available");'
    + ' def halt_error($code): error("halt_error is not available");'
)
"""A program that halts would end ours too."""

_ALONE = _GUARDS + " null as $existing | null as $new |\n"
"""What goes before one of a rule's programs by itself. It ends its line, so that a complaint counts
lines as the client does. What compiles behind it has no bracket too many, and no name of ours."""

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
"""Of one payload: what is wrong with the rule, or an empty text."""

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
"""Of a host and the new payloads behind it: a text for each, up to the first that is sealed off,
and the host's payload at the end."""

_PLACE = re.compile(r" at line (\d+)")

FOLDED, SEALED = "f", "s"


class Chain(NamedTuple):
    """What became of the first of some new payloads, and the host's payload then.

    A verdict is `FOLDED`, `SEALED` (which is the last one), or "e" and why the fold has failed.
    """

    verdicts: list[str]
    payload: str


class TooSlow(Exception):
    """Programs took longer than they may here, or too much memory; the message says which."""


class JqFolds:
    """Runs the programs of batches in one process. One call runs, others wait.

    `seconds` bounds a call, without its wait for others; `memory` is in bytes of address space.
    """

    def __init__(self, *, seconds: float, memory: int = 256 * MIB) -> None:
        self.seconds = seconds
        self._lane = JqLane(memory, int(seconds) + 1)

    async def compile(self, programs: tuple[str, str]) -> None:
        """Raise `Unprocessable` where one of a rule's programs does not compile."""
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
        """What is wrong with a rule that compiles, tried on each payload; empty where nothing is.

        Raises `TooSlow`.
        """
        _, body = await self._run(_texts(*programs)[0], payloads)
        faults: list[str] = []
        for outputs, error in msgspec.json.decode(body):
            fault = outputs[0] if outputs else f"payload: {error}"
            faults.append(fault[:LONGEST_REASON] and f"batch dry-run: {fault[:LONGEST_REASON]}")
        return faults

    async def chain(self, programs: tuple[str, str], host: str, payloads: Sequence[str]) -> Chain:
        """Fold payloads into a host's by its rule, in order, up to the first that is sealed off.

        Each has been checked with a rule of its own. Raises `TooSlow`.
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
        except FilterAborted:
            raise TooSlow("its process ended, most likely for want of memory") from None
        return answer.compiles, answer.body


def _up(place: re.Match[str]) -> str:
    """The place of a fault without the line that goes before."""
    return f" at line {int(place[1]) - 1}"


@lru_cache(256)
def _texts(when: str, fold: str) -> tuple[bytes, bytes]:
    """The programs that check a rule, and that fold by it."""
    return _filled(_CHECK, when, fold), _filled(_CHAIN, when, fold)


def _filled(text: str, when: str, fold: str) -> bytes:
    head, _, rest = text.partition("WHEN")
    middle, _, tail = rest.partition("FOLD")
    return f"{_GUARDS}{_SAY}{head}{when}{middle}{fold}{tail}".encode()
