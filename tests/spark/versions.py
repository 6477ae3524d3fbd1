"""The versions of PySpark that tests run with beside that of the environment.

    python tests/spark/versions.py        puts those that are missing into .peers/

Each is a directory of PySpark alone: before the environment's own packages on PYTHONPATH it takes
the place of the one among them.
"""

import subprocess
import sys
from pathlib import Path

MINORS = ("4.0", "4.1", "4.2", "4.3")
"""Those that zq is said to work with."""

OTHERS = ("4.0.5", "4.1.4", "4.3.0")
"""Of each minor version but that of the environment, the one that is tried."""

PEERS = Path(__file__).parents[2] / ".peers"


def place(version: str) -> Path:
    """Where it lies."""
    return PEERS / f"pyspark-{version}"


def install(version: str) -> None:
    """Have it lie there, whole. It takes half a minute and half a gigabyte."""
    there = place(version)
    if there.exists():
        return
    made = there.with_suffix(".making")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    subprocess.run(
        [*pip, "--no-deps", "--upgrade", "--target", str(made), f"pyspark=={version}"], check=True
    )
    made.rename(there)


if __name__ == "__main__":
    for version in OTHERS:
        install(version)
