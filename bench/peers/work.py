"""`python -m bench.peers.work ADAPTER`: the worker of a peer that has no command for it."""

from __future__ import annotations

import importlib
import sys

from bench.peers.wire import site


def main() -> None:
    adapter = importlib.import_module(f"bench.peers.adapters.{sys.argv[1]}")
    adapter.work(site().concurrency)


if __name__ == "__main__":
    main()
