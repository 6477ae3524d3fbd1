"""How long the files of the suite take, so that the slowest begin first.

    .ci/run
    .venv/bin/python tests/durations.py build/junit.xml > tests/durations.txt

The first command leaves the durations of its run in `build/junit.xml`. The second prints each file
that takes two seconds or more: its seconds, how many of them a processor was at work for it, and
its name. Where workers share the files, a file that takes a minute and begins last would keep one
of them alone at work for that minute. Seconds at work say how many workers a machine can feed, and
what is worth making cheaper.
"""

import os
import sys
import xml.etree.ElementTree as ET
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

KEPT = ROOT / "tests" / "durations.txt"

LEAST_S = 2

WORK = "processor_s"
"""The property of a test in junit.xml that says how many seconds of a processor it took."""

TOGETHER = {
    f"tests/spark/test_{subject}.py": "Spark"
    for subject in (
        *("bronze", "cluster", "crash", "document", "estimates", "files", "golden"),
        *("progress", "report", "source", "streaming", "versions"),
    )
}
"""Files that one worker takes one after the other: they share a session of Spark, which costs as
much as many of their tests, as does all that its Java learns of Spark in the first of them.
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
    return {file: int(seconds) for seconds, *_, file in map(str.split, lines)}


def processor_s() -> float:
    """Seconds of a processor that this process and all below it have taken, the ended ones too."""
    ticks, left = 0, [os.getpid()]
    while left:
        process = Path("/proc") / str(left.pop())
        try:
            after_name = (process / "stat").read_text().rpartition(")")[2].split()
            ticks += sum(map(int, after_name[11:15]))
            for children in process.glob("task/*/children"):
                left += map(int, children.read_text().split())
        except OSError:  # it has ended meanwhile
            continue
    return ticks / os.sysconf("SC_CLK_TCK")


def by_file(junit: Path) -> dict[str, tuple[float, float]]:
    """Seconds and seconds of a processor, by file."""
    found: defaultdict[str, tuple[float, float]] = defaultdict(lambda: (0.0, 0.0))
    for case in ET.parse(junit).iter("testcase"):
        worked = [
            each.get("value", 0) for each in case.iter("property") if each.get("name") == WORK
        ]
        file = _file(case.get("classname", ""))
        seconds, processor = found[file]
        found[file] = (seconds + float(case.get("time", 0)), processor + sum(map(float, worked)))
    return found


def _file(name: str) -> str:
    """The file of `tests.tick.test_due.TestSome`: a class may follow the module."""
    words = name.split(".")
    while words and not (ROOT / "/".join(words)).with_suffix(".py").is_file():
        words.pop()
    return "/".join(words) + ".py"


def lines(junit: Path) -> Iterator[str]:
    for file, (seconds, worked) in sorted(by_file(junit).items(), key=lambda each: -each[1][0]):
        if seconds >= LEAST_S:
            yield f"{round(seconds):4} {round(worked):4} {file}"


if __name__ == "__main__":
    print("\n".join(lines(Path(sys.argv[1]))))
