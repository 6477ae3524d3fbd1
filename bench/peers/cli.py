"""`python -m bench peers`: zq beside other job queues."""

from __future__ import annotations

import argparse
import json
import signal
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from bench.options import names_of
from bench.peers.compare import Plan, compare, find_homes
from bench.peers.roster import contenders, named
from bench.peers.rows import ROWS
from bench.peers.tables import Run, document, text, write_between
from bench.peers.trial import Size
from bench.report import REPOSITORY, Progress, facts
from bench.servers import ServerError, lab

RESULTS = REPOSITORY / "bench" / "results" / "peers.md"
PLOTS = REPOSITORY / "bench" / "plots"
SMALL = 0.02
EXAMPLES = """
examples:
  python -m bench peers                                   everything, small, three rounds
  python -m bench peers --rows bulk,process-100 --scale 1 two rows in full size
  python -m bench peers --peers zq-http,bullmq,rq/always  some peers, or one mode of a peer
  python -m bench peers --scale 0.2 --rounds 5 --write    a run for results/peers.md, with plots
  python -m bench peers --draw run.json --write           the same from the output of --json

Peers are installed into .peers/ of the checkout, their servers by apt-get where run as root.
"""


def arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bench peers",
        description="Run the same work on zq and on other job queues, turn by turn.",
        epilog=EXAMPLES + listing(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--peers", default="", help="a comma list of peers or peer/mode [all]")
    add("--rows", type=names_of(ROWS, "no such row"), default=list(ROWS), help="a comma list [all]")
    add("--rounds", type=int, default=3, help="runs of each row on each contender [3]")
    add("--scale", type=float, default=SMALL, help=f"1 is the full size [{SMALL}]")
    add("--dir", type=Path, help="a directory on the disk to measure [that for temporary files]")
    add("--json", action="store_true", help="every sample, for scripts")
    add("--markdown", action="store_true", help="the tables as bench/results/peers.md has them")
    add(
        "--write",
        action="store_true",
        help="put tables into bench/results/peers.md, draw the plots",
    )
    add("--plots", type=Path, help="draw a PNG a row into this directory")
    add("--draw", type=Path, metavar="JSON", help="run nothing: show what --json printed before")
    return parser


def listing() -> str:
    rows = "\n".join(f"  {row.name:<12} {row.title}" for row in ROWS.values())
    return f"\nrows:\n{rows}\n\npeers:\n  " + "\n  ".join(each.name for each in contenders())


def measure(args: argparse.Namespace, words: Sequence[str]) -> Run:
    wanted = named(args.peers.split(",")) if args.peers else contenders()
    progress = Progress()
    with lab(args.dir) as place:
        notes = facts(["peers", *words], place.sync_ms())
        homes, missing = find_homes(wanted, progress)
        plan = Plan(args.rows, wanted, args.rounds, Size.of(args.scale))
        samples = compare(place, plan, homes, progress)
    versions = {name: home.version for name, home in homes.items()}
    return Run(notes, args.rows, [each.name for each in wanted], versions, missing, samples)


def show(args: argparse.Namespace, run: Run) -> None:
    if args.json:
        print(json.dumps(asdict(run), indent=1))
    elif args.markdown:
        print(document(run))
    else:
        print(text(run))
    if directory := PLOTS if args.write else args.plots:
        # What draws takes most of a second to import.
        from bench.peers.plots import draw

        draw(run, directory)
    if args.write:
        write_between(RESULTS, "peers", document(run, images="../plots"))


def main(words: Sequence[str]) -> int:
    args = arguments().parse_args(words)
    # SIGTERM must end the servers too.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        run = Run.load(args.draw.read_text()) if args.draw else measure(args, words)
        show(args, run)
    except KeyboardInterrupt:
        return 130
    except (ServerError, ValueError) as error:
        print(f"bench: {error}", file=sys.stderr)
        return 1
    return 0
