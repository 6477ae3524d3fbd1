"""The measurements of the server that bench/results/ publishes, one section after the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence

SECTIONS: tuple[tuple[str, list[str]], ...] = (
    ("Every row", ["compare"]),
    ("5 ms more for every flush", ["compare", "--commit-delay-ms", "5"]),
    ("1,000 queues", ["compare", "--queues", "1000"]),
    ("Requests of one job each", ["lone"]),
    ("A lone caller beside bulks and checkpoints", ["beside"]),
    ("From enqueue to delivery", ["latency"]),
    ("Pages that a commit writes", ["pages"]),
    ("Where a tick's time goes", ["cost"]),
    ("Instructions of an enqueue", ["instructions"]),
)
"""Title and command of each section. A command with rounds or seconds takes those of `publish`."""

HAVE_ROUNDS = ("compare", "lone", "beside")
HAVE_SECONDS = (*HAVE_ROUNDS, "latency")
COUNTED_SLOWLY = "instructions"
THEIRS = "zq,baseline-loop,baseline-thread"
"""The servers whose instructions are counted. The original's would not be comparable."""


def publish(
    run: Callable[[list[str]], int], common: Sequence[str], rounds: int | None, seconds: int | None
) -> int:
    """Run every section as a command with the `common` options; 1 if any could not be measured."""
    failed = 0
    for title, words in SECTIONS:
        print(f"### {title}\n", flush=True)
        chosen = [*words, *common, "--markdown"]
        if rounds and words[0] in HAVE_ROUNDS:
            chosen += ["--rounds", str(rounds)]
        if seconds and words[0] in HAVE_SECONDS:
            chosen += ["--seconds", str(seconds)]
        if words[0] == COUNTED_SLOWLY:
            chosen += ["--servers", THEIRS]
        failed |= run(chosen)
        print(flush=True)
    return failed
