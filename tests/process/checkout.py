"""A copy of this checkout, as somebody has it who has just cloned it."""

import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]


def names() -> list[str]:
    """The files that git knows, and those that it would add."""
    listing = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    return [name for name in listing.split("\0") if (ROOT / name).is_file()]


def checkout(place: Path) -> Path:
    """Copy these files into a folder."""
    for name in names():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_bytes((ROOT / name).read_bytes())
    return place
