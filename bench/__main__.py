"""`python -m bench`: measure zq beside the bare baseline."""

from __future__ import annotations

import argparse
import json
import signal
import sys
from collections.abc import Callable
from dataclasses import asdict, replace
from typing import Any

from bench.attacks.attacks import attacks, attacks_table
from bench.attacks.catalogue import all_attacks, attacks_named
from bench.beside import beside, beside_table
from bench.calls import calls, calls_table
from bench.compare import Plan, compare, comparison
from bench.cost import cost, cost_table
from bench.crowd import crowd, crowd_table
from bench.depth import depth, depth_table
from bench.edge import edge, edge_table
from bench.entries import entries, entries_table
from bench.examples import EXAMPLES
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
from bench.options import common
from bench.outbox import moved, moved_table
from bench.pages import pages, pages_table
from bench.publish import publish
from bench.report import Progress, Table, facts
from bench.rows import ROWS
from bench.servers import NAMES, Lab, ServerError, lab
from bench.several import several, several_table
from bench.shares import shares, shares_table
from bench.singles import singles, singles_table
from bench.topics import topics, topics_table
from bench.viewers import viewers, viewers_table
from bench.walk import walk, walk_table
from bench.words import counts, engine_names, row_names, rows_with_workers, server_names

Scenario = Callable[[argparse.Namespace, Lab, Progress], tuple[Table, Any]]
SERVERS_HELP = f"a comma list of {', '.join(NAMES)} [zq,baseline and what else is named]"


def run_compare(args: argparse.Namespace, place: Lab, progress: Progress) -> tuple[Table, Any]:
    plan = Plan(args.rows, args.rounds, args.seconds, args.queues, args.servers or place.at_hand)
    samples = compare(place, plan, progress)
    return comparison(plan, samples), [asdict(sample) for sample in samples]


def run_latency(args: argparse.Namespace, place: Lab, progress: Progress) -> tuple[Table, Any]:
    found = latency(place, args.servers or place.at_hand, args.queues, args.seconds, progress)
    return latency_table(found), [asdict(each) for each in found]


def run_depth(args: argparse.Namespace, place: Lab, progress: Progress) -> tuple[Table, Any]:
    found = depth(
        place, args.servers or place.at_hand, args.waiting, args.queues, args.seconds, progress
    )
    return depth_table(found), [asdict(each) for each in found]


def run_idle(args: argparse.Namespace, place: Lab, progress: Progress) -> tuple[Table, Any]:
    found = idle(place, args.servers or place.at_hand, args.streams, args.seconds, progress)
    return idle_table(found), {server: asdict(each) for server, each in found.items()}


def run_large(args: argparse.Namespace, place: Lab, progress: Progress) -> tuple[Table, Any]:
    found = large(
        place, args.servers or place.at_hand, args.payload, args.jobs, args.rounds, progress
    )
    return large_table(found), [asdict(each) for each in found]


def run_lone(args: argparse.Namespace, place: Lab, progress: Progress) -> tuple[Table, Any]:
    servers = args.servers or place.at_hand
    found = lone(place, servers, args.rounds, args.seconds, args.queues, progress)
    return lone_table(servers, found), [asdict(each) for each in found]


def run_beside(args: argparse.Namespace, place: Lab, progress: Progress) -> tuple[Table, Any]:
    servers = args.servers or place.at_hand
    found = beside(place, servers, args.rounds, args.seconds, args.queues, progress)
    return beside_table(servers, found), [asdict(each) for each in found]


def run_http2(args: argparse.Namespace, place: Lab, progress: Progress) -> tuple[Table, Any]:
    found = http2(place, args.engines, args.rounds, args.seconds, progress)
    return http2_table(found), [asdict(each) for each in found]


def run_library(args: argparse.Namespace, place: Lab, progress: Progress) -> tuple[Table, Any]:
    found = library(place, args.rounds, args.seconds, progress)
    return library_table(found), [asdict(each) for each in found]


def run_singles(args: argparse.Namespace, place: Lab, progress: Progress) -> tuple[Table, Any]:
    found = singles(place, args.rounds, args.seconds, progress)
    return singles_table(found), [asdict(each) for each in found]


def run_calls(args: argparse.Namespace, place: Lab, progress: Progress) -> tuple[Table, Any]:
    found = calls(place, args.rounds, progress)
    return calls_table(found), [asdict(each) for each in found]


def run_history(args: argparse.Namespace, place: Lab, progress: Progress) -> tuple[Table, Any]:
    found = history(place, args.rows, args.rounds, args.seconds, args.queues, progress)
    return history_table(found), [asdict(each) for each in found]


def run_cost(args: argparse.Namespace, place: Lab, progress: Progress) -> tuple[Table, Any]:
    found = cost(place, args.jobs, args.ticks, args.queues, progress)
    return cost_table(found), [asdict(each) for each in found]


def run_pages(args: argparse.Namespace, place: Lab, progress: Progress) -> tuple[Table, Any]:
    found = pages(place, args.queues, args.ticks, progress)
    return pages_table(found), [asdict(each) for each in found]


def run_instructions(args: argparse.Namespace, place: Lab, progress: Progress) -> tuple[Table, Any]:
    found = instructions(place, args.servers or place.at_hand, args.queues, progress)
    return instructions_table(found), [asdict(each) for each in found]


def run_page(args: argparse.Namespace, place: Lab, progress: Progress) -> tuple[Table, Any]:
    given = (place, args.rows, args.rounds, args.seconds, args.queues, progress)
    found = viewers(*given, pages=True)
    return viewers_table(found), [asdict(each) for each in found]


def run_viewers(args: argparse.Namespace, place: Lab, progress: Progress) -> tuple[Table, Any]:
    found = viewers(place, args.rows, args.rounds, args.seconds, args.queues, progress)
    return viewers_table(found), [asdict(each) for each in found]


def run_gates(args: argparse.Namespace, place: Lab, progress: Progress) -> tuple[Table, Any]:
    found = gates(place, args.jobs, args.waiting, args.ticks, args.queues, progress)
    return gates_table(found), [asdict(each) for each in found]


def run_crowd(args: argparse.Namespace, place: Lab, progress: Progress) -> tuple[Table, Any]:
    found = crowd(place, args.jobs, args.waiting, args.ticks, progress)
    return crowd_table(found), [asdict(each) for each in found]


def run_lines(args: argparse.Namespace, place: Lab, progress: Progress) -> tuple[Table, Any]:
    found = lines(place, args.jobs, args.waiting, args.ticks, progress)
    return lines_table(found), [asdict(each) for each in found]


def run_shares(args: argparse.Namespace, place: Lab, progress: Progress) -> tuple[Table, Any]:
    found = shares(place, args.jobs, args.numbers, args.ticks, progress)
    return shares_table(found), [asdict(each) for each in found]


def run_edge(args: argparse.Namespace, place: Lab, progress: Progress) -> tuple[Table, Any]:
    found = edge(place, progress)
    return edge_table(found), [asdict(each) for each in found]


def run_fleet(args: argparse.Namespace, place: Lab, progress: Progress) -> tuple[Table, Any]:
    found = fleet(place, args.seconds, args.rounds, progress)
    return fleet_table(found), [asdict(each) for each in found]


def run_several(args: argparse.Namespace, place: Lab, progress: Progress) -> tuple[Table, Any]:
    found = several(
        *(place, args.rows, args.counts, args.rounds, args.seconds, args.queues),
        *(args.each, progress),
    )
    return several_table(found), [asdict(each) for each in found]


def run_lane(args: argparse.Namespace, place: Lab, progress: Progress) -> tuple[Table, Any]:
    found = lane(place, args.jobs, args.batches, progress)
    return lane_table(found), [asdict(each) for each in found]


def run_flood(args: argparse.Namespace, place: Lab, progress: Progress) -> tuple[Table, Any]:
    found = flood(place, args.jobs, args.seconds, progress)
    return flood_table(found), [asdict(each) for each in found]


def run_numbered(args: argparse.Namespace, place: Lab, progress: Progress) -> tuple[Table, Any]:
    found = numbered(place, args.rounds, args.seconds, args.queues, progress)
    return numbered_table(found), [asdict(each) for each in found]


def run_entries(args: argparse.Namespace, place: Lab, progress: Progress) -> tuple[Table, Any]:
    found = entries(place, args.entries, args.rounds, args.seconds, progress)
    return entries_table(found), [[asdict(each) for each in pair] for pair in found]


def run_walk(args: argparse.Namespace, place: Lab, progress: Progress) -> tuple[Table, Any]:
    found = walk(place, progress)
    return walk_table(found), [asdict(each) for each in found]


def run_topics(args: argparse.Namespace, place: Lab, progress: Progress) -> tuple[Table, Any]:
    found = topics(place, args.records, args.seconds, args.queues, progress)
    return topics_table(found), [asdict(each) for each in found]


def run_messages(args: argparse.Namespace, place: Lab, progress: Progress) -> tuple[Table, Any]:
    found = messages(place, args.rounds, args.seconds, progress)
    return messages_table(found), [asdict(each) for each in found]


def run_outbox(args: argparse.Namespace, place: Lab, progress: Progress) -> tuple[Table, Any]:
    found = moved(place, args.rounds, args.rows, args.jobs, progress)
    return moved_table(found), [asdict(each) for each in found]


def run_attacks(args: argparse.Namespace, place: Lab, progress: Progress) -> tuple[Table, Any]:
    found = attacks(place, args.attacks or all_attacks(), args.scale, progress)
    return attacks_table(found), [asdict(each) for each in found]


def run_pipeline(args: argparse.Namespace, place: Lab, progress: Progress) -> tuple[Table, Any]:
    from bench.pipeline import pipeline, pipeline_table  # needs the extra `spark`

    found = pipeline(place, args.records, args.devices, args.real, progress)
    return pipeline_table(found), [asdict(each) for each in found]


def run_spark_write(args: argparse.Namespace, place: Lab, progress: Progress) -> tuple[Table, Any]:
    from bench.spark_write import spark_write, spark_write_table  # needs the extra `spark`

    found = spark_write(place, args.rows, progress)
    return spark_write_table(found), asdict(found)


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
        name: str, function: Scenario, title: str, *, servers: bool = False
    ) -> Callable[..., argparse.Action]:
        added = commands.add_parser(name, parents=[shared], help=title, description=title)
        added.set_defaults(function=function)
        if servers:
            added.add_argument("--servers", type=server_names, help=SERVERS_HELP)
        return added.add_argument

    add = command("compare", run_compare, "the same rows on all servers, by rounds", servers=True)
    add("--rows", type=row_names, default=list(ROWS), help="a comma list [all]")
    add("--rounds", type=int, default=5, help="runs of each row on each server [5]")
    add("--seconds", type=float, default=3.0, help="measured time of a run [3]")
    add = command(
        "lone", run_lone, "requests of one job each, under wrk and the Python load", servers=True
    )
    add("--rounds", type=int, default=3, help="runs of each row on each server [3]")
    add("--seconds", type=int, default=3, help="measured time of a run, whole seconds [3]")
    add = command(
        "beside", run_beside, "how long a lone caller waits beside large requests", servers=True
    )
    add("--rounds", type=int, default=3, help="runs of each case on each server [3]")
    add("--seconds", type=float, default=5.0, help="measured time of a run [5]")
    add = command(
        "latency", run_latency, "from enqueue to delivery, worker idle or busy", servers=True
    )
    add("--seconds", type=float, default=10.0, help="measured time [10]")
    add = command("depth", run_depth, "the take rate over a backlog", servers=True)
    add("--seconds", type=float, default=10.0, help="measured time [10]")
    add("--waiting", type=counts, default=[10**4, 10**6, 5 * 10**6], help="[10k,1M,5M]")
    add = command("idle", run_idle, "take streams with nothing to do", servers=True)
    add("--seconds", type=float, default=30.0, help="measured time [30]")
    add("--streams", type=int, default=10_000, help="how many [10,000]")
    add = command("large", run_large, "large payloads over a take stream", servers=True)
    add("--payload", type=int, default=2**20, help="bytes of a payload [1048576]")
    add("--jobs", type=int, default=200, help="how many are taken [200]")
    add("--rounds", type=int, default=3, help="runs on each server [3]")
    add = command("http2", run_http2, "single jobs and acknowledgements over HTTP/2 and HTTP/1.1")
    add("--engines", type=engine_names, default=LIBRARIES, help="a comma list [h2,zttp]")
    add("--rounds", type=int, default=5, help="runs of each row each way [5]")
    add("--seconds", type=float, default=3.0, help="measured time of a run, about [3]")
    add = command("pipeline", run_pipeline, "job history through Spark: time by stage")
    add("--records", type=counts, default=[2_000_000], help="a comma list [2M]")
    add("--devices", type=int, default=20, help="over which they are spread [20]")
    add("--real", type=float, default=0.0, help="seconds of load whose real history comes first")
    add = command("spark-write", run_spark_write, "rows of Spark become jobs: rate and memory")
    add("--rows", type=lambda text: counts(text)[0], default=10_000_000, help="[10M]")
    add = command("library", run_library, "the Python library: worker, enqueue_many, call")
    add("--rounds", type=int, default=5, help="runs of each row [5]")
    add("--seconds", type=float, default=3.0, help="measured time of a run, about [3]")
    add = command("singles", run_singles, "single enqueues of the library beside plain HTTP")
    add("--rounds", type=int, default=5, help="runs of each row [5]")
    add("--seconds", type=float, default=2.0, help="measured time of a run, about [2]")
    add = command("calls", run_calls, "calls of the Python library, by how many are under way")
    add("--rounds", type=int, default=3, help="runs of each case [3]")
    for name, run, what in (
        ("history", run_history, "what keeping a history costs"),
        ("viewers", run_viewers, "what 20 viewers of the admin API cost"),
        ("page", run_page, "what 20 open pages of operators cost"),
    ):
        add = command(name, run, what)
        add("--rows", type=rows_with_workers, default=list(AIMS), help="a comma list [all]")
        add("--rounds", type=int, default=5, help="runs of each row on each server [5]")
        add("--seconds", type=float, default=3.0, help="measured time of a run [3]")
    add = command("cost", run_cost, "where the time of a tick goes, without a server")
    add("--jobs", type=counts, default=[10, 1000], help="settled and claimed a tick [10,1000]")
    add("--ticks", type=int, default=60, help="measured ticks [60]")
    add = command("pages", run_pages, "pages that each kind of tick writes, without a server")
    add("--ticks", type=int, default=20, help="measured ticks of each kind [20]")
    add = command(
        "instructions", run_instructions, "instructions of one enqueue, by callgrind", servers=True
    )
    add = command("gates", run_gates, "claims past a thousand paused queues, without a server")
    add("--jobs", type=counts, default=[12, 100, 1000], help="settled and claimed a tick")
    add("--waiting", type=lambda text: counts(text)[0], default=500_000, help="[500k]")
    add("--ticks", type=int, default=60, help="measured ticks [60]")
    add = command("crowd", run_crowd, "claims from 10,000 queues, without a server")
    add("--jobs", type=counts, default=[12, 100, 1000], help="settled and claimed a tick")
    add("--waiting", type=lambda text: counts(text)[0], default=50_000, help="paused jobs [50k]")
    add("--ticks", type=int, default=60, help="measured ticks [60]")
    add = command("lines", run_lines, "claims beside jobs that wait for a budget, without a server")
    add("--jobs", type=counts, default=[10, 100], help="settled and claimed a tick [10,100]")
    add("--waiting", type=lambda text: counts(text)[0], default=1_000_000, help="[1M]")
    add("--ticks", type=int, default=60, help="measured ticks [60]")
    add = command("shares", run_shares, "jobs with budgets or fair keys, without a server")
    add("--jobs", type=counts, default=[1, 100, 1000], help="settled and claimed a tick")
    add("--numbers", type=counts, default=[1, 1000, 100_000], help="budgets, and keys")
    add("--ticks", type=int, default=60, help="measured ticks [60]")
    command("edge", run_edge, "what zq costs a small device: memory, a start, bytes written")
    add = command("fleet", run_fleet, "200 devices and a hub, one floods: how long the others wait")
    add("--seconds", type=float, default=10.0, help="of each case [10]")
    add("--rounds", type=int, default=3, help="runs of each case [3]")
    add = command("several", run_several, "servers that share a database of PostgreSQL, in sum")
    add("--rows", type=row_names, default=["bulk", "single", "take-100"], help="a comma list")
    add("--counts", type=counts, default=[0, 1, 2], help="of servers; 0: one in a directory")
    add("--each", action="store_true", help="every server has a whole row's connections")
    add("--rounds", type=int, default=3, help="runs of each row and number [3]")
    add("--seconds", type=float, default=3.0, help="measured time of a run [3]")
    add = command("lane", run_lane, "a device sends its backlog to a hub: jobs a second")
    add("--jobs", type=lambda text: counts(text)[0], default=100_000, help="[100k]")
    add("--batches", type=counts, default=[100, 500, 2000, 5000], help="jobs of a request")
    add = command("flood", run_flood, "one tenant floods a queue: how long the others wait")
    add("--jobs", type=lambda text: counts(text)[0], default=100_000, help="of the flood [100k]")
    add("--seconds", type=float, default=10.0, help="for which the others send [10]")
    add = command("producer", run_numbered, "bulks of producers with numbers beside plain bulks")
    add("--rounds", type=int, default=5, help="runs of each row [5]")
    add("--seconds", type=float, default=5.0, help="seconds of each run [5]")
    add = command("entries", run_entries, "what cron entries cost while none is due")
    add("--entries", type=lambda text: counts(text)[0], default=100_000, help="[100k]")
    add("--rounds", type=int, default=3, help="runs with and without entries [3]")
    add("--seconds", type=float, default=5.0, help="measured time, idle and under load [5]")
    add = command("topics", run_topics, "records appended and read beside jobs in bulk")
    add("--seconds", type=float, default=3.0, help="measured time of a run [3]")
    add("--records", type=counts, default=[], help="read topics of these sizes instead")
    add = command("messages", run_messages, "messages and records consumed beside native claims")
    add("--rounds", type=int, default=3, help="runs of each row [3]")
    add("--seconds", type=float, default=3.0, help="measured time of a run [3]")
    add = command("outbox", run_outbox, "rows of an outbox on PostgreSQL become jobs")
    add("--rounds", type=int, default=5, help="runs of each row [5]")
    add("--rows", type=lambda text: counts(text)[0], default=60_000, help="moved in a run [60k]")
    add("--jobs", type=lambda text: counts(text)[0], default=200, help="waited for in a run [200]")
    add = command("attacks", run_attacks, "what others notice while one client attacks")
    add("--attacks", type=attacks_named, help="a comma list of files or names [all]")
    add("--scale", type=float, default=1.0, help="sends that part of the full size [1]")
    command("walk", run_walk, "files that one request of each kind passes through")
    return parser


def show(args: argparse.Namespace, table: Table, data: Any, notes: dict[str, str]) -> None:
    if args.json:
        print(json.dumps({"facts": notes, "results": data}, indent=1))
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
            table, data = args.function(args, place, progress)
    except (ServerError, ValueError) as error:
        progress.clear()
        print(f"bench: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        progress.clear()
        raise
    show(args, table, data, notes)
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
