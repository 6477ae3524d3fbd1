"""`python -m bench.peers.work ADAPTER`: the worker of a peer that has no command for it."""

from __future__ import annotations

import importlib
import sys
import threading
from collections.abc import Callable

from bench.peers.wire import site


def in_threads(count: int, consume: Callable[[], None]) -> None:
    """Run the loop of a worker in so many threads."""
    threads = [threading.Thread(target=consume) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def main() -> None:
    adapter = importlib.import_module(f"bench.peers.adapters.{sys.argv[1]}")
    adapter.work(site().concurrency)


if __name__ == "__main__":
    main()
