"""How long the files of the suite take, so that the slowest begin first.

    .ci/run
    .venv/bin/python tests/durations.py build/junit.xml > tests/durations.txt

The first command leaves the durations of its run in `build/junit.xml`, the second the seconds of
each file that takes two or more. Where workers share the files, a file that takes a minute and
begins last would keep one of them alone at work for that minute.
"""

import sys
import xml.etree.ElementTree as ET
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

KEPT = ROOT / "tests" / "durations.txt"

LEAST_S = 2

TOGETHER = {
    f"tests/spark/test_{subject}.py": group
    for group, subjects in {
        "Spark over a lake": ("bronze", "document", "estimates", "golden", "progress", "report"),
        "Spark over a server": ("cluster", "crash", "source", "streaming", "versions"),
    }.items()
    for subject in subjects
}
"""Files that one worker takes one after the other: they share a session of Spark, which costs as
much as many of their tests.
"""


def unit_of(nodeid: str) -> str:
    """What a test goes to a worker with: its file, or a group of files."""
    file = nodeid.partition("::")[0]
    return TOGETHER.get(file, file)


def slowest_first(items: list[pytest.Item]) -> None:
    """Sort tests by what they go to a worker with. What is in a file stays in its order."""
    seconds: defaultdict[str, int] = defaultdict(int)
    for file, each in kept().items():
        seconds[unit_of(file)] += each
    units = [unit_of(item.nodeid) for item in items]
    first = {unit: index for index, unit in reversed(list(enumerate(units)))}
    items.sort(key=lambda item: (-seconds[u := unit_of(item.nodeid)], first[u]))


def kept() -> dict[str, int]:
    """Seconds by file, as the last run that was kept had them."""
    lines = KEPT.read_text(encoding="utf-8").splitlines()
    return {file: int(seconds) for seconds, file in map(str.split, lines)}


def seconds_by_file(junit: Path) -> dict[str, float]:
    found: defaultdict[str, float] = defaultdict(float)
    for case in ET.parse(junit).iter("testcase"):
        found[_file(case.get("classname", ""))] += float(case.get("time", 0))
    return found


def _file(name: str) -> str:
    """The file of `tests.tick.test_due.TestSome`: a class may follow the module."""
    words = name.split(".")
    while words and not (ROOT / "/".join(words)).with_suffix(".py").is_file():
        words.pop()
    return "/".join(words) + ".py"


def lines(junit: Path) -> Iterator[str]:
    found = seconds_by_file(junit)
    for file, seconds in sorted(found.items(), key=lambda each: -each[1]):
        if seconds >= LEAST_S:
            yield f"{round(seconds):4} {file}"


if __name__ == "__main__":
    print("\n".join(lines(Path(sys.argv[1]))))
