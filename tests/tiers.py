"""The three tiers of this suite, by folder and marker.

- fast (`pytest -m fast -n 2`): decisions, codecs and parts of the server, in under two minutes,
  without Java, a browser or another program.
- all (`pytest -n 6 --dist loadfile`): what CI runs.
- long (`pytest -m long`): the same laws at the sizes and for the numbers of crashes that they are
  published for; an hour and more.
"""

from pathlib import Path

import pytest

FAST = ("admin", "engine", "http", "model", "service", "store", "tick", "wire")
"""Folders whose tests are fast. The files that lie in no folder are, too."""

NOT_FAST = ("http2", "tls", "postgres", "test_systemd.py")
"""What of those is not: it starts servers, h2spec, PostgreSQL, or tools of systemd."""

ROOT = Path(__file__).parent


def is_fast(path: Path) -> bool:
    """Whether a test file belongs to the fast tier."""
    place = path.relative_to(ROOT).parts
    return len(place) == 1 or (place[0] in FAST and not set(place) & set(NOT_FAST))


def sizes(name: str, usual: float, published: float) -> pytest.MarkDecorator:
    """Run a test at its usual size, and in the long tier at the one that is published."""
    return pytest.mark.parametrize(name, [usual, pytest.param(published, marks=pytest.mark.long)])
