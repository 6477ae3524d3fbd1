"""The words of the command line, as lists of names and numbers."""

from __future__ import annotations

import argparse

from bench.history import AIMS
from bench.http2 import LIBRARIES
from bench.rows import ROWS
from bench.servers import NAMES


def row_names(text: str) -> list[str]:
    names = text.split(",")
    if unknown := [name for name in names if name not in ROWS]:
        raise argparse.ArgumentTypeError(f"no such row: {', '.join(unknown)}")
    return names


def rows_with_workers(text: str) -> list[str]:
    names = row_names(text)
    if without := [name for name in names if name not in AIMS]:
        raise argparse.ArgumentTypeError(f"no attempt ends in {', '.join(without)}")
    return names


def server_names(text: str) -> list[str]:
    names = text.split(",")
    if unknown := [name for name in names if name not in NAMES]:
        raise argparse.ArgumentTypeError(f"no such server: {', '.join(unknown)}")
    return names


def engine_names(text: str) -> list[str]:
    names = text.split(",")
    if unknown := [name for name in names if name not in LIBRARIES]:
        raise argparse.ArgumentTypeError(f"no such library of HTTP/2: {', '.join(unknown)}")
    return names


def counts(text: str) -> list[int]:
    """`10k,1M` as numbers. An empty text has none."""
    if not text:
        return []
    return [round(float(each.replace("k", "e3").replace("M", "e6"))) for each in text.split(",")]
