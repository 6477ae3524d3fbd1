"""Servers of a fleet that run an earlier version of zq, from a commit of this repository."""

import os
import subprocess
from pathlib import Path

from .fleet import Fleet

ROOT = Path(__file__).parents[2]
MIGRATIONS = Path("zq/store/sqlite/migrations")

EARLIER = os.environ.get("CRASH_EARLIER") or "e8650202"
"""The first commit whose devices fetch what a hub has for them."""


def checkout(commit: str, place: Path) -> Path:
    """The sources of a commit."""
    place.mkdir()
    archive = ["git", "archive", "--format=tar", commit, "zq"]
    packed = subprocess.run(archive, cwd=ROOT, capture_output=True, check=True).stdout
    subprocess.run(["tar", "-x", "-C", place], input=packed, check=True)
    return place


def _migrations(tree: Path) -> int:
    return len(list((tree / MIGRATIONS).glob("*.sql")))


async def another_version_runs(fleet: Fleet, earlier: Path) -> None:
    """One server goes on as the other version: the earlier one, where that can read its store."""
    machine = fleet.random.choice(fleet.machines)
    if machine.tree is None and _migrations(earlier) < _migrations(ROOT):
        return
    await fleet.some_jobs()
    await machine.kill()
    machine.tree = earlier if machine.tree is None else None
    await fleet.start(machine)
