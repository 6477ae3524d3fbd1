"""The versions of PySpark that tests run with beside that of the environment.

    python tests/spark/versions.py    installs them into .peers/, for the long tier

Each is a directory of PySpark alone. Before the environment's own packages on PYTHONPATH it takes
the place of the environment's PySpark.
"""

import subprocess
import sys
from pathlib import Path

import pyspark

VERSIONS = {"4.0": "4.0.5", "4.1": "4.1.4", "4.2": "4.2.0", "4.3": "4.3.0"}
"""Minor version that zq supports → the release that is tried."""

OWN = pyspark.__version__.rpartition(".")[0]
"""The environment's minor version."""

OTHERS = [version for minor, version in VERSIONS.items() if minor != OWN]

PEERS = Path(__file__).parents[2] / ".peers"


def place(version: str) -> Path:
    """The directory of a version."""
    return PEERS / f"pyspark-{version}"


def install(version: str) -> None:
    """Put a version into its directory, whole. It takes half a minute and half a gigabyte."""
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
