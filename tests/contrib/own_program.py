"""Runs Django's own tests of tasks in the current folder, and prints how each has ended in JSON."""

import json
import sys
import unittest
from typing import Any

import django
from django.test.runner import DiscoverRunner

from contrib.sample import set_up


class Ends(unittest.TextTestResult):
    """How each test has ended: null is well."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.ends: dict[str, str | None] = {}

    def startTest(self, test: unittest.TestCase) -> None:  # noqa: N802
        super().startTest(test)
        self.ends[test.id()] = None

    def stopTestRun(self) -> None:  # noqa: N802
        super().stopTestRun()
        for test, said in (*self.failures, *self.errors):
            case = getattr(test, "test_case", test)  # a part of a test has its own name
            self.ends[case.id()] = said


class Runner(DiscoverRunner):
    """Prints the ends."""

    def get_resultclass(self) -> Any:
        return Ends

    def suite_result(self, suite: Any, result: Any, **kwargs: Any) -> int:
        print(json.dumps(result.ends))
        return 0


if __name__ == "__main__":
    set_up()
    print(f"Django {django.__version__}", file=sys.stderr)
    Runner(verbosity=0).run_tests(["tasks"])
