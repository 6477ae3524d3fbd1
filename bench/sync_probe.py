"""How long an fdatasync takes in a directory, in ms: `python -m bench.sync_probe DIR`.

It is a program of its own, so it can run under the same preloaded library as the servers.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
from time import perf_counter

ROUNDS = 200
PAGE = b"x" * 4096


def probe(directory: str) -> float:
    """The median of `ROUNDS` syncs of 4 KiB each."""
    times = []
    with tempfile.TemporaryFile(dir=directory, buffering=0) as file:
        for page in range(ROUNDS):
            os.pwrite(file.fileno(), PAGE, page * len(PAGE))
            began = perf_counter()
            os.fdatasync(file.fileno())
            times.append(perf_counter() - began)
    return statistics.median(times) * 1e3


if __name__ == "__main__":
    print(probe(sys.argv[1]))
