"""The words of the command line: options that all commands share, lists of names, and numbers."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Container
from pathlib import Path

from bench.baseline_disk import KINDS
from bench.history import AIMS
from bench.http2 import LIBRARIES
from bench.loops import LOOPS, best_loop
from bench.rows import ROWS
from bench.servers import NAMES

EXAMPLES = """
examples:
  python -m bench                                every row, five rounds
  python -m bench --rows single,ack --rounds 9   two rows, more rounds
  python -m bench --queues 1000 --markdown       a table for bench/results
  python -m bench --commit-delay-ms 5 --json     a slower disk, for scripts
  python -m bench --servers baseline,baseline    what noise makes of a ratio of 1
  python -m bench --servers null,baseline        the ceiling of the load itself
  python -m bench --before DIR --zizq PATH       an earlier zq and the original as well
  python -m bench turns --before DIR             what a change costs, to a hundredth or two
  python -m bench lone                           requests of one job each, under wrk too
  python -m bench beside                         a lone caller beside bulks and checkpoints
  python -m bench attacks --attacks bodies       what others notice of one client's large bodies
  python -m bench latency                        from enqueue to delivery
  python -m bench depth --waiting 10k,1M,5M      the take rate over a backlog
  python -m bench http2 --engines zttp           HTTP/2 by that library, and HTTP/1.1
  python -m bench library                        the Python library: worker, enqueue_many, call
  python -m bench singles                        its single enqueues beside plain HTTP
  python -m bench calls                          the library's calls, by how many are under way
  python -m bench history                        the same load with a history and without
  python -m bench viewers                        the same load with 20 viewers and without
  python -m bench idle --streams 10000           workers with nothing to do
  python -m bench large --payload 1048576        megabytes a second to one worker
  python -m bench pipeline --records 2M,20M      job history through Spark, by stage
  python -m bench spark-write --rows 10M         rows of Spark become jobs: rate and memory
  python -m bench cost --jobs 10,1000            a tick, statement by statement
  python -m bench pages                          pages that each kind of tick writes
  python -m bench instructions                   of one enqueue, counted by callgrind
  python -m bench gates --waiting 5M             claims past a thousand paused queues
  python -m bench crowd --jobs 100               claims from 10,000 queues while one is paused
  python -m bench lines --waiting 1M             claims beside a million jobs that wait for a budget
  python -m bench entries --entries 100k         cron entries of which none is due
  python -m bench producer                       bulks of producers with numbers beside plain bulks
  python -m bench topics --records 10k,10M       pages of a small topic and a large one
  python -m bench messages                       messages and records consumed beside native claims
  python -m bench outbox                         rows of an outbox on PostgreSQL become jobs
  python -m bench walk                           files that one request passes through
  python -m bench publish --before DIR           all that is published, in markdown: an hour
  python -m bench peers --help                   zq beside other job queues

rows:
""" + "\n".join(f"  {name:<10} {row.title}" for name, row in ROWS.items())


def common() -> argparse.ArgumentParser:
    """A parser of these options, for others to begin with."""
    parser = argparse.ArgumentParser(add_help=False)
    add = parser.add_argument
    add("--queues", type=int, default=10, help="queues that the jobs go to [10]")
    add("--commit-delay-ms", type=float, default=0.0, help="delay of every flush [0]")
    add("--dir", type=Path, help="a directory on the disk to measure [that for temporary files]")
    add("--baseline", choices=KINDS, default=KINDS[0], help=f"where it ticks [{KINDS[0]}]")
    add("--event-loop", choices=LOOPS, default=best_loop(), help=f"the baseline's [{best_loop()}]")
    add("--before", type=Path, metavar="DIR", help="a checkout of an earlier zq to run as well")
    add("--zizq", type=Path, metavar="PATH", help="the original's program, to run as well")
    add("--json", action="store_true", help="everything that was measured, for scripts")
    add("--markdown", action="store_true", help="a table and its circumstances, for bench/results")
    return parser


def names_of(known: Container[str], refusal: str) -> Callable[[str], list[str]]:
    """Reads a comma list of these names. The refusal of others begins with `refusal`."""

    def read(text: str) -> list[str]:
        names = text.split(",")
        if unknown := [name for name in names if name not in known]:
            raise argparse.ArgumentTypeError(f"{refusal}: {', '.join(unknown)}")
        return names

    return read


row_names = names_of(ROWS, "no such row")
rows_with_workers = names_of(AIMS, "no attempt ends in such a row")
server_names = names_of(NAMES, "no such server")
engine_names = names_of(LIBRARIES, "no such library of HTTP/2")


def count(text: str) -> int:
    """`10k` or `1M` as a number."""
    return round(float(text.replace("k", "e3").replace("M", "e6")))


def counts(text: str) -> list[int]:
    """`10k,1M` as numbers. An empty text has none."""
    return [count(each) for each in text.split(",") if text]
