"""`python -m bench.soak`: the long runs of the crash laboratory (tests/crash)."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from random import Random
from typing import Any

from bench.report import Progress, Table, number
from bench.servers import REPOSITORY, lab
from bench.soak_load import soak

sys.path.insert(0, str(REPOSITORY / "tests"))

from conformance.client import Client
from crash import overload
from crash.actors import Notebook
from crash.disk import compile_library, new_disk
from crash.lives import judge
from crash.overload import Report, Wait
from crash.power import Loss, cut_again_and_again, lose_a_tail
from crash.sigkill import kill_again_and_again
from process.server import ServerProcess, running

BATCH = 30
"""How many crashes happen on one directory. A new one then follows, to keep listings short."""

PAUSES = (0.0, 0.001, 0.02, 0.2)
"""Seconds between two enqueues, to measure the loss in buffered mode."""

FUZZ_TESTS = ("tests/crash/test_fuzz.py", "tests/crash/test_fuzz_connections.py")
FUZZ_EXAMPLES = 2_000

Overload = Callable[[ServerProcess, Client, Path], Awaitable[Report]]

OVERLOADS: tuple[tuple[Sequence[str], Overload], ...] = (
    (("--max-inbox-jobs", "1000"), lambda s, c, _: overload.producers(s, c, 200, requests=10)),
    ((), lambda s, c, _: overload.workers(s, c, 1_000)),
    ((), lambda s, c, _: overload.silent(s, c, 5_000)),
    (("--max-wal", "128MiB"), lambda s, c, file: overload.pinned(s, c, file, mib=300)),
)

EXAMPLES = """
examples:
  python -m bench.soak kill --cycles 1000          SIGKILL of server, workers and both
  python -m bench.soak cut --cycles 300            power cuts, fsync mode: nothing may be lost
  python -m bench.soak loss --cycles 40            power cuts, buffered mode: how much is lost
  python -m bench.soak load --minutes 120          steady load: does anything grow?
  python -m bench.soak overload                    producers, workers, connections, a long reader
  python -m bench.soak fuzz --minutes 10           codecs and connections
  python -m bench.soak kill --cycles 30 --seed 7   the same choices again
"""

Result = tuple[Table, Any]


async def kill(folder: Path, seed: str, cycles: int, notebook: Notebook) -> None:
    await kill_again_and_again(folder / "data", notebook, Random(seed), cycles)


async def cut(folder: Path, seed: str, cycles: int, notebook: Notebook) -> None:
    disk = new_disk(compile_library(folder, "disk"), folder)
    await cut_again_and_again(disk, notebook, Random(seed), cycles)


def crashes(args: argparse.Namespace, folder: Path, progress: Progress) -> Result:
    """Crash in batches. Stop at the first broken promise, and keep its history."""
    begun, events = time.monotonic(), 0
    for first in range(0, args.cycles, BATCH):
        part, seed = min(BATCH, args.cycles - first), f"{args.seed}-{first}"
        progress.show(f"{first} of {args.cycles} crashes, {events} events; seed {seed}")
        place = folder / str(first)
        place.mkdir()
        notebook = Notebook()
        try:
            asyncio.run(args.crash(place, seed, part, notebook))
        finally:
            judge(notebook.history, args.keep)
        events += len(notebook.history)
    minutes = (time.monotonic() - begun) / 60
    facts = {
        "crashes": str(args.cycles),
        "events judged": number(events),
        "breaches": "0",
        "minutes": number(minutes, 1),
        "seed": args.seed,
    }
    return Table(list(facts), [list(facts.values())]), facts


def loss(args: argparse.Namespace, folder: Path, progress: Progress) -> Result:
    """Measure how much buffered mode loses at power cuts, at several rates."""
    library = compile_library(folder, "disk")
    found: dict[float, list[Loss]] = {pause: [] for pause in PAUSES}
    random = Random(args.seed)
    for cycle in range(args.cycles):
        pause = PAUSES[cycle % len(PAUSES)]
        progress.show(f"{cycle} of {args.cycles} power cuts")
        place = new_disk(library, folder / str(cycle))
        seconds = random.uniform(2.0, 5.0)
        found[pause].append(asyncio.run(lose_a_tail(place, random, seconds, pause)))
    lines = [
        [
            f"{pause * 1000:g}",
            str(len(cuts)),
            number(max(cut.jobs for cut in cuts)),
            number(max(cut.window_ms for cut in cuts)),
            "yes" if all(cut.is_tail for cut in cuts) else "NO",
        ]
        for pause, cuts in found.items()
        if cuts
    ]
    header = ["ms between enqueues", "cuts", "most jobs lost", "longest window, ms", "only a tail"]
    return Table(header, lines), {
        pause: [cut._asdict() for cut in cuts] for pause, cuts in found.items()
    }


def overloads(args: argparse.Namespace, folder: Path, progress: Progress) -> Result:
    """Each overload at its full size, on a server of its own."""
    found: list[Report] = []
    for place, (flags, run) in enumerate(OVERLOADS):
        progress.show(f"overload {place + 1} of {len(OVERLOADS)}")
        found.append(asyncio.run(_overload(folder / str(place), flags, run)))
    lines = [
        [
            each.scenario,
            *_waits(each.calm),
            *_waits(each.usual),
            *_waits(each.loaded),
            number(each.calm_rss),
            number(each.peak_rss),
            ", ".join(f"{count:,} {what}" for what, count in each.counts.items()),
        ]
        for each in found
    ]
    header = [
        "overload",
        "p99 calm, ms",
        "work",
        "usual",
        "work",
        "then",
        "work",
        "RSS calm, MiB",
        "RSS peak",
        "counts",
    ]
    return Table(header, lines), [vars(each) for each in found]


def _waits(wait: Wait | None) -> list[str]:
    return ["", ""] if wait is None else [number(ms, 1) for ms in wait]


async def _overload(root: Path, flags: Sequence[str], run: Overload) -> Report:
    async with running(root, *flags) as server, server.client() as client:
        return await run(server, client, root / "zq.db")


def fuzz(args: argparse.Namespace, folder: Path, progress: Progress) -> Result:
    """Run the fuzz tests with new examples every time, until the time of each file is up."""
    found: list[list[str]] = []
    for tests in FUZZ_TESTS:
        deadline = time.monotonic() + args.minutes * 60
        rounds = 0
        while time.monotonic() < deadline:
            progress.show(f"{tests}: {rounds} rounds of {FUZZ_EXAMPLES} examples a test")
            subprocess.run(
                [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", tests],
                cwd=REPOSITORY,
                env=os.environ | {"CRASH_FUZZ": str(FUZZ_EXAMPLES)},
                stdout=sys.stderr,
                check=True,
            )
            rounds += 1
        found.append([tests, f"{args.minutes:g}", str(rounds), str(FUZZ_EXAMPLES)])
    header = ["tests", "minutes", "rounds", "examples a test"]
    return Table(header, found), [dict(zip(header, each, strict=True)) for each in found]


def load(args: argparse.Namespace, folder: Path, progress: Progress) -> Result:
    """Run a steady load and fit a line to the server's use of resources."""
    with lab(folder) as place:
        found = soak(place, args.minutes, args.share, progress)
    lines = [
        [each.name, number(each.mean, 1), number(each.per_hour, 2), number(each.error, 2)]
        for each in found.slopes
    ]
    rates = f"{number(found.done)} of {number(found.asked)} jobs/s"
    lines.append([f"{rates}, {found.minutes:g} minutes", "", "", ""])
    return Table(["second half", "mean", "slope an hour", "± (standard error)"], lines), asdict(
        found
    )


def arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bench.soak",
        description="The long runs of the crash laboratory. See tests/crash/README.md.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(metavar="command", required=True)

    def command(name: str, run: Callable[..., Result], cycles: int, title: str) -> Any:
        added = commands.add_parser(name, help=title, description=title)
        added.set_defaults(run=run)
        add = added.add_argument
        add("--seed", default=str(time.time_ns()), help="repeats a run's choices [drawn]")
        add("--dir", type=Path, help="a directory on the disk to use [that for temporary files]")
        add("--keep", type=Path, default=Path(), help="where a bad history is put [here]")
        add("--json", action="store_true", help="everything, for scripts")
        if cycles:
            add("--cycles", type=int, default=cycles, help=f"how many crashes [{cycles}]")
        return added

    command("overload", overloads, 0, "more than a server was made for")
    fuzzing = command("fuzz", fuzz, 0, "garbage for the codecs and the connections").add_argument
    fuzzing("--minutes", type=float, default=10.0, help="for each of them [10]")
    command("kill", crashes, 1000, "SIGKILL of server, workers, both").set_defaults(crash=kill)
    command("cut", crashes, 300, "power cuts in fsync mode").set_defaults(crash=cut)
    command("loss", loss, 40, "power cuts in buffered mode: how much is lost")
    steady = command("load", load, 0, "a steady load: does anything grow?").add_argument
    steady("--minutes", type=float, default=120.0, help="how long [120]")
    steady("--share", type=float, default=0.6, help="of the rate that the server can do [0.6]")
    return parser


def main() -> int:
    args = arguments().parse_args()
    progress = Progress()
    with tempfile.TemporaryDirectory(prefix="zq-soak-", dir=args.dir) as name:
        table, data = args.run(args, Path(name), progress)
    progress.clear()
    print(json.dumps(data, indent=1) if args.json else table.text())
    return 0


if __name__ == "__main__":
    sys.exit(main())
