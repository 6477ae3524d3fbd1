"""Budgets under SIGKILL: no token is lost, none is out twice, and whoever waits is paid.

`CRASH_SEED` repeats a run's choices.
"""

import time
from pathlib import Path
from random import Random

import pytest
from tiers import sizes

from .budgets import BURST, Holding, Look, Notes, breaches, live_and_die, look, work_off
from .lives import seed


@sizes("kills", 2, 300)
async def test_tokens_are_neither_lost_nor_doubled_whatever_is_killed(
    kills: int, tmp_path: Path
) -> None:
    root, notes, random = tmp_path / "data", Notes(), Random(seed())
    began = time.monotonic()
    for _ in range(kills):
        await live_and_die(root, notes, random)
        assert [*breaches(look(root), time.monotonic() - began)] == []
    assert [*notes.breaches()] == []
    await work_off(root)
    last = look(root)
    assert [*breaches(last, time.monotonic() - began)] == []
    assert (set(last.in_use.values()), last.kept, last.in_line) == ({0}, {}, frozenset())


FINE = Look(
    {"two": 1, "five": 3},
    {"two": 1, "five": 3},
    {"two": (3, 1)},
    {"two": (3, 1)},
    frozenset({7}),
    frozenset({7}),
    BURST,
)


def test_a_file_as_it_should_be_has_no_breach() -> None:
    assert [*breaches(FINE, 0.0)] == []


@pytest.mark.parametrize(
    ("seen", "words"),
    [
        (FINE._replace(in_use={"two": 0, "five": 3}), "0 in use, but jobs hold 1"),
        (FINE._replace(in_use={"two": 3, "five": 3}, drawn={"two": 3, "five": 3}), "3 in use of 2"),
        (FINE._replace(kept={}), "the counts are"),
        (FINE._replace(in_line=frozenset()), "1 jobs wait in no line"),
        (FINE._replace(rated=BURST + 1), "tokens of rate were drawn"),
    ],
)
def test_a_breach_in_a_file_is_found(seen: Look, words: str) -> None:
    found = [*breaches(seen, 0.0)]
    assert any(words in breach for breach in found), found


def test_a_breach_that_clients_have_seen_is_found() -> None:
    notes = Notes()
    notes.holdings = [Holding(1.0, 2.0, {"two": 2}), Holding(2.0, 3.0, {"two": 2})]
    assert [*notes.breaches()] == []
    notes.holdings.append(Holding(1.5, 1.6, {"two": 1}))
    assert [*notes.breaches()] == ["3 tokens of two were out, of 2"]
