"""Celery, for the program of the page about it.

    python tests/moving/celerys.py        installs it into .peers/, unless it is there

It is no package of the environment, because it brings releases of its own of what others need.
"""

import os
import subprocess
import sys
from pathlib import Path

VERSION = "5.7.0"

PLACE = Path(__file__).parents[2] / ".peers" / f"celery-{VERSION}"


def install() -> None:
    """Put it into its directory, with what it needs. It takes some seconds, and 29 MB."""
    if PLACE.exists():
        return
    made = PLACE.with_suffix(".making")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    subprocess.run(
        [*pip, "--upgrade", "--target", str(made), f"celery[redis]=={VERSION}"], check=True
    )
    made.rename(PLACE)


def environment(redis: str) -> dict[str, str]:
    """The variables of programs that use Celery."""
    path = f"{PLACE / 'bin'}:{os.environ['PATH']}"
    return {"PYTHONPATH": str(PLACE), "PATH": path, "REDIS_URL": redis}


if __name__ == "__main__":
    install()
