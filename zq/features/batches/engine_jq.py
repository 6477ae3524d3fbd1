"""Folds by jq: the rules of batches are checked on new payloads, and run from a host on.

The two programs of a rule see `$existing` and `$new`, and null as their input. They run inside a
program of ours, which needs one call for any number of jobs. `check` tries a rule on each new
payload, on both sides. `chain` folds one payload after the other into a host. Payloads come out as
text from jq, so a number that no program has changed keeps all its digits.
"""

import asyncio
import re
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import msgspec

from zq.engine.jq.lane import JqLane, Overtime
from zq.model.errors import FilterAborted, FilterNotStarted, Unprocessable

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
