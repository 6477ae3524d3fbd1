"""The tests that Django has of its framework of tasks. They come with Django's source package.

    python tests/contrib/own_tests.py        puts them into .peers/, unless they are there

Nothing else of the package is kept. The backport `django-tasks` ships no tests.
"""

import subprocess
import sys
import tarfile
import tempfile
from fnmatch import fnmatch
from pathlib import Path

VERSION = "6.1.3"

PLACE = Path(__file__).parents[2] / ".peers" / f"django-{VERSION}-tests"
"""The folder with the files of `tests/tasks`."""

COMMAND = [sys.executable, "-m", "pip", "--disable-pip-version-check", "download", "--quiet"]

FLAGS = ["--no-deps", "--no-binary", "django", "--ignore-requires-python"]
"""Django 6 itself needs Python 3.12, which its tests of tasks do not."""


def install() -> None:
    """Download the source package, and keep its tests of tasks. It takes some ten seconds."""
    if PLACE.exists():
        return
    made = PLACE.with_suffix(".making")
    made.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([*COMMAND, *FLAGS, "--dest", folder, f"django=={VERSION}"], check=True)
        (package,) = Path(folder).iterdir()
        with tarfile.open(package) as archive:
            kept = [each for each in archive if fnmatch(each.name, "*/tests/tasks/*.py")]
            for each in kept:
                file = archive.extractfile(each)
                assert file is not None
                (made / Path(each.name).name).write_bytes(file.read())
    made.rename(PLACE)


if __name__ == "__main__":
    install()
