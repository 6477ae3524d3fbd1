"""The options that all commands of the bench share."""

from __future__ import annotations

import argparse
from pathlib import Path

from bench.baseline_disk import KINDS
from bench.loops import LOOPS, best_loop


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
