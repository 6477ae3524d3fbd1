"""A copy of this checkout, as somebody has it who has just cloned it."""

import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]


def checkout(place: Path) -> Path:
    """Copy what git knows, and what it would add, into a folder."""
    listing = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    for name in filter(None, listing.split("\0")):
        if (ROOT / name).is_file():
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            (place / name).write_bytes((ROOT / name).read_bytes())
    return place
