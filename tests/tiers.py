"""The three tiers of this suite, by folder and marker.

- fast (`pytest -m fast -n 2`): decisions, codecs and parts of the server, in under two minutes,
  without Java, a browser or another program.
- all (`pytest -n 6 --dist loadfile`): what CI runs.
- long (`pytest -m long`): the same laws at the sizes and for the numbers of crashes that they are
  published for; an hour and more.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar
from zlib import crc32

import pytest

FAST = ("admin", "engine", "http", "model", "service", "store", "tick", "wire")
"""Folders whose tests are fast. The files that lie in no folder are, too."""

NOT_FAST = ("http2", "tls", "postgres", "test_systemd.py")
"""What of those is not: it starts servers, h2spec, PostgreSQL, or tools of systemd."""

ROOT = Path(__file__).parent

T = TypeVar("T")


def is_fast(path: Path) -> bool:
    """Whether a test file belongs to the fast tier."""
    place = path.relative_to(ROOT).parts
    return len(place) == 1 or (place[0] in FAST and not set(place) & set(NOT_FAST))


def is_left_open(metafunc: pytest.Metafunc, name: str) -> bool:
    """True if a test asks for a fixture to which neither a mark nor its module gives a value."""
    marks = metafunc.definition.iter_markers("parametrize")
    return (
        name in metafunc.fixturenames
        and not hasattr(metafunc.module, name)
        and not any(name in mark.args[:1] for mark in marks)
    )


def by_name(metafunc: pytest.Metafunc, values: Sequence[T]) -> T:
    """One of several values, always the same one for a test of this name."""
    return values[crc32(metafunc.function.__name__.encode()) % len(values)]


def usual_of(
    metafunc: pytest.Metafunc, usual: Sequence[object], every: Sequence[object]
) -> list[Any]:
    """The usual ones as parameters, and all others for the long tier where it is asked for."""
    chosen: list[Any] = list(usual)
    if metafunc.config.getoption("markexpr") not in ("not long", "fast"):
        others = (each for each in every if each not in usual)
        chosen += (pytest.param(each, marks=pytest.mark.long) for each in others)
    return chosen


def sizes(name: str, usual: float, published: float) -> pytest.MarkDecorator:
    """Run a test at its usual size, and in the long tier at the one that is published."""
    return pytest.mark.parametrize(name, [usual, pytest.param(published, marks=pytest.mark.long)])
