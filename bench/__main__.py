"""`python -m bench`: measure zq beside the bare baseline."""

from __future__ import annotations

import argparse
import json
import signal
import sys
from collections.abc import Callable
from dataclasses import asdict, replace
from functools import partial
from importlib import import_module
from inspect import Parameter, signature
from typing import Any

from bench.attacks.attacks import all_attacks, attacks, attacks_named, attacks_table
from bench.beside import beside, beside_table
from bench.calls import calls, calls_table
from bench.compare import compare, comparison
from bench.cost import cost, cost_table
from bench.crowd import crowd, crowd_table
from bench.depth import depth, depth_table
from bench.edge import edge, edge_table
from bench.entries import entries, entries_table
from bench.fleet import fleet, fleet_table
from bench.flood import flood, flood_table
from bench.gates import gates, gates_table
from bench.history import AIMS, history, history_table
from bench.http2 import LIBRARIES, http2, http2_table
from bench.idle import idle, idle_table
from bench.instructions import instructions, instructions_table
from bench.lane import lane, lane_table
from bench.large import large, large_table
from bench.latency import latency, latency_table
from bench.library import library, library_table
from bench.lines import lines, lines_table
from bench.lone import lone, lone_table
from bench.messages import messages, messages_table
from bench.numbered import numbered, numbered_table
from bench.options import (
    EXAMPLES,
    common,
    count,
    counts,
    engine_names,
    row_names,
    rows_with_workers,
    server_names,
)
from bench.outbox import moved, moved_table
from bench.pages import pages, pages_table
from bench.publish import publish
from bench.report import Progress, Table, facts
from bench.rows import ROWS
from bench.servers import NAMES, ServerError, lab
from bench.several import several, several_table
from bench.shares import shares, shares_table
from bench.singles import singles, singles_table
from bench.topics import topics, topics_table
from bench.turns import turns, turns_table
from bench.viewers import viewers, viewers_table
from bench.walk import walk, walk_table

SIZES_HELP = "settled and claimed a tick"
PLAIN = Parameter.POSITIONAL_OR_KEYWORD
SERVERS_HELP = f"a comma list of {', '.join(NAMES)} [zq,baseline and what else is named]"


def late(module: str, name: str) -> tuple[Callable[..., Any], Callable[[Any], Table]]:
    """A measurement, and its table, of a module that is imported at its first use."""
    return (
        lambda *given: getattr(import_module(module), name)(*given),
        lambda found: getattr(import_module(module), f"{name}_table")(found),
    )


def arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bench",
        description="Measure zq beside the bare baseline. Without a command: compare.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(metavar="command", required=True)
    shared = common()

    def command(
        name: str,
        title: str,
        measure: Callable[..., Any],
        table: Callable[[Any], Table],
        parameters: str = "",
    ) -> Callable[..., argparse.Action]:
        """Add a command. Its options are what `measure` takes between the lab and the progress."""
        given = (
            parameters.split()
            or [each.name for each in signature(measure).parameters.values() if each.kind is PLAIN][
                1:-1
            ]
        )
        added = commands.add_parser(name, parents=[shared], help=title, description=title)
        added.set_defaults(measure=measure, table=table, given=given)
        if "servers" in given:
            added.add_argument("--servers", type=server_names, help=SERVERS_HELP)
        return added.add_argument

    def ticking(add: Callable[..., argparse.Action], sizes: list[int]) -> None:
        add("--jobs", dest="sizes", metavar="JOBS", type=counts, default=sizes, help=SIZES_HELP)
        add("--ticks", type=int, default=60, help="measured ticks [60]")

    add = command("compare", "the same rows on all servers, by rounds", compare, comparison)
    add("--rows", type=row_names, default=list(ROWS), help="a comma list [all]")
    add("--rounds", type=int, default=5, help="runs of each row on each server [5]")
    add("--seconds", type=float, default=3.0, help="measured time of a run [3]")
    add = command(
        "turns", "the same rows in short turns, for small differences", turns, turns_table
    )
    add("--rows", type=row_names, default=["bulk", "single", "take-100"], help="a comma list")
    add("--rounds", type=int, default=10, help="two or more, each with new servers [10]")
    add("--turns", type=int, default=20, help="of each server in a round [20]")
    add("--seconds", type=float, default=0.2, help="at most so long is a turn [0.2]")
    add = command(
        "lone", "requests of one job each, under wrk and the Python load", lone, lone_table
    )
    add("--rounds", type=int, default=3, help="runs of each row on each server [3]")
    add("--seconds", type=int, default=3, help="measured time of a run, whole seconds [3]")
    add = command(
        "beside", "how long a lone caller waits beside large requests", beside, beside_table
    )
    add("--rounds", type=int, default=3, help="runs of each case on each server [3]")
    add("--seconds", type=float, default=5.0, help="measured time of a run [5]")
    add = command(
        "latency", "from enqueue to delivery, worker idle or busy", latency, latency_table
    )
    add("--seconds", type=float, default=10.0, help="measured time [10]")
    add = command("depth", "the take rate over a backlog", depth, depth_table)
    add("--seconds", type=float, default=10.0, help="measured time [10]")
    add(
        "--waiting",
        dest="depths",
        metavar="WAITING",
        type=counts,
        default=[10**4, 10**6, 5 * 10**6],
        help="[10k,1M,5M]",
    )
    add = command("idle", "take streams with nothing to do", idle, idle_table)
    add("--seconds", type=float, default=30.0, help="measured time [30]")
    add("--streams", type=int, default=10_000, help="how many [10,000]")
    add = command("large", "large payloads over a take stream", large, large_table)
    add("--payload", type=int, default=2**20, help="bytes of a payload [1048576]")
    add("--jobs", type=int, default=200, help="how many are taken [200]")
    add("--rounds", type=int, default=3, help="runs on each server [3]")
    add = command(
        "http2", "single jobs and acknowledgements over HTTP/2 and HTTP/1.1", http2, http2_table
    )
    add(
        "--engines",
        dest="libraries",
        metavar="ENGINES",
        type=engine_names,
        default=LIBRARIES,
        help="a comma list [h2,zttp]",
    )
    add("--rounds", type=int, default=5, help="runs of each row each way [5]")
    add("--seconds", type=float, default=3.0, help="measured time of a run, about [3]")
    add = command(
        "pipeline",
        "job history through Spark: time by stage",
        *late("bench.pipeline", "pipeline"),
        "records devices real",
    )
    add("--records", type=counts, default=[2_000_000], help="a comma list [2M]")
    add("--devices", type=int, default=20, help="over which they are spread [20]")
    add("--real", type=float, default=0.0, help="seconds of load whose real history comes first")
    add = command(
        "spark-write",
        "rows of Spark become jobs: rate and memory",
        *late("bench.spark_write", "spark_write"),
        "rows",
    )
    add("--rows", type=count, default=10_000_000, help="[10M]")
    add = command(
        "library", "the Python library: worker, enqueue_many, call", library, library_table
    )
    add("--rounds", type=int, default=5, help="runs of each row [5]")
    add("--seconds", type=float, default=3.0, help="measured time of a run, about [3]")
    add = command(
        "singles", "single enqueues of the library beside plain HTTP", singles, singles_table
    )
    add("--rounds", type=int, default=5, help="runs of each row [5]")
    add("--seconds", type=float, default=2.0, help="measured time of a run, about [2]")
    add = command(
        "calls", "calls of the Python library, by how many are under way", calls, calls_table
    )
    add("--rounds", type=int, default=3, help="runs of each case [3]")
    for name, what, measure, table in (
        ("history", "what keeping a history costs", history, history_table),
        ("viewers", "what 20 viewers of the admin API cost", viewers, viewers_table),
        (
            "page",
            "what 20 open pages of operators cost",
            partial(viewers, pages=True),
            viewers_table,
        ),
    ):
        add = command(name, what, measure, table)
        add("--rows", type=rows_with_workers, default=list(AIMS), help="a comma list [all]")
        add("--rounds", type=int, default=5, help="runs of each row on each server [5]")
        add("--seconds", type=float, default=3.0, help="measured time of a run [3]")
    add = command("cost", "where the time of a tick goes, without a server", cost, cost_table)
    ticking(add, [10, 1000])
    add = command(
        "pages", "pages that each kind of tick writes, without a server", pages, pages_table
    )
    add("--ticks", type=int, default=20, help="measured ticks of each kind [20]")
    add = command(
        "instructions",
        "instructions of one enqueue, by callgrind",
        instructions,
        instructions_table,
    )
    add = command(
        "gates", "claims past a thousand paused queues, without a server", gates, gates_table
    )
    ticking(add, [12, 100, 1000])
    add("--waiting", type=count, default=500_000, help="[500k]")
    add = command("crowd", "claims from 10,000 queues, without a server", crowd, crowd_table)
    ticking(add, [12, 100, 1000])
    add("--waiting", type=count, default=50_000, help="paused jobs [50k]")
    add = command(
        "lines", "claims beside jobs that wait for a budget, without a server", lines, lines_table
    )
    ticking(add, [10, 100])
    add("--waiting", type=count, default=1_000_000, help="[1M]")
    add = command(
        "shares", "jobs with budgets or fair keys, without a server", shares, shares_table
    )
    ticking(add, [1, 100, 1000])
    add("--numbers", type=counts, default=[1, 1000, 100_000], help="budgets, and keys")
    command(
        "edge", "what zq costs a small device: memory, a start, bytes written", edge, edge_table
    )
    add = command(
        "fleet", "200 devices and a hub, one floods: how long the others wait", fleet, fleet_table
    )
    add("--seconds", type=float, default=10.0, help="of each case [10]")
    add("--rounds", type=int, default=3, help="runs of each case [3]")
    add = command(
        "several", "servers that share a database of PostgreSQL, in sum", several, several_table
    )
    add("--rows", type=row_names, default=["bulk", "single", "take-100"], help="a comma list")
    add("--counts", type=counts, default=[0, 1, 2], help="of servers; 0: one in a directory")
    add("--each", action="store_true", help="every server has a whole row's connections")
    add("--rounds", type=int, default=3, help="runs of each row and number [3]")
    add("--seconds", type=float, default=3.0, help="measured time of a run [3]")
    add = command("lane", "a device sends its backlog to a hub: jobs a second", lane, lane_table)
    add("--jobs", type=count, default=100_000, help="[100k]")
    add("--batches", type=counts, default=[100, 500, 2000, 5000], help="jobs of a request")
    add = command(
        "flood", "one tenant floods a queue: how long the others wait", flood, flood_table
    )
    add("--jobs", type=count, default=100_000, help="of the flood [100k]")
    add("--seconds", type=float, default=10.0, help="for which the others send [10]")
    add = command(
        "producer", "bulks of producers with numbers beside plain bulks", numbered, numbered_table
    )
    add("--rounds", type=int, default=5, help="runs of each row [5]")
    add("--seconds", type=float, default=5.0, help="seconds of each run [5]")
    add = command("entries", "what cron entries cost while none is due", entries, entries_table)
    add("--entries", dest="count", metavar="ENTRIES", type=count, default=100_000, help="[100k]")
    add("--rounds", type=int, default=3, help="runs with and without entries [3]")
    add("--seconds", type=float, default=5.0, help="measured time, idle and under load [5]")
    add = command("topics", "records appended and read beside jobs in bulk", topics, topics_table)
    add("--seconds", type=float, default=3.0, help="measured time of a run [3]")
    add(
        "--records",
        dest="sizes",
        metavar="RECORDS",
        type=counts,
        default=[],
        help="read topics of these sizes instead",
    )
    add = command(
        "messages", "messages and records consumed beside native claims", messages, messages_table
    )
    add("--rounds", type=int, default=3, help="runs of each row [3]")
    add("--seconds", type=float, default=3.0, help="measured time of a run [3]")
    add = command("outbox", "rows of an outbox on PostgreSQL become jobs", moved, moved_table)
    add("--rounds", type=int, default=5, help="runs of each row [5]")
    add("--rows", type=count, default=60_000, help="moved in a run [60k]")
    add("--jobs", type=count, default=200, help="waited for in a run [200]")
    add = command("attacks", "what others notice while one client attacks", attacks, attacks_table)
    add(
        "--attacks",
        dest="chosen",
        metavar="ATTACKS",
        type=attacks_named,
        default=all_attacks(),
        help="a comma list of files or names [all]",
    )
    add("--scale", type=float, default=1.0, help="sends that part of the full size [1]")
    command("walk", "files that one request of each kind passes through", walk, walk_table)
    return parser


def show(args: argparse.Namespace, found: Any, notes: dict[str, str]) -> None:
    table: Table = args.table(found)
    if args.json:
        print(json.dumps({"facts": notes, "results": found}, indent=1, default=asdict))
    elif args.markdown:
        print("\n".join(f"- {name}: {text}" for name, text in notes.items()))
        print(f"\n{table.markdown()}")
    else:
        print("\n".join(f"{name}: {text}" for name, text in notes.items()))
        print(f"\n{table.text()}")


def published(words: list[str]) -> int:
    """Run `publish`. It has the options that all commands share, and two of its own."""
    own = argparse.ArgumentParser(add_help=False)
    own.add_argument("--rounds", type=int, help="[what each command has]")
    own.add_argument("--seconds", type=int, help="[what each command has]")
    title = "what bench/results/ publishes of the server, in markdown"
    parser = argparse.ArgumentParser(
        prog="python -m bench publish", parents=[common(), own], description=f"Measure {title}."
    )
    parser.parse_args(words)
    chosen, shared = own.parse_known_args(words)
    return publish(run, shared, chosen.rounds, chosen.seconds)


def run(words: list[str]) -> int:
    """Run one command, `compare` if none is named, and print what it found; the exit status."""
    if not words or (words[0].startswith("-") and words[0] not in ("-h", "--help")):
        words = ["compare", *words]
    args = arguments().parse_args(words)
    progress = Progress()
    try:
        with lab(args.dir, args.commit_delay_ms) as empty:
            place = replace(
                empty,
                event_loop=args.event_loop,
                baseline=args.baseline,
                before=args.before,
                zizq=args.zizq,
            )
            notes = facts(words, place.sync_ms())
            if "servers" in args.given:
                args.servers = args.servers or place.at_hand
            options = [getattr(args, name) for name in args.given]
            found = args.measure(place, *options, progress)
    except (ServerError, ValueError) as error:
        progress.clear()
        print(f"bench: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        progress.clear()
        raise
    show(args, found, notes)
    return 0


def main() -> int:
    words = sys.argv[1:]
    if words[:1] == ["peers"]:
        # `peers` is a command of its own: it shares neither options nor a baseline with the others.
        from bench.peers.cli import main as peers

        return peers(words[1:])
    # SIGTERM must end the servers too.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        if words[:1] == ["publish"]:
            return published(words[1:])
        return run(words)
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
