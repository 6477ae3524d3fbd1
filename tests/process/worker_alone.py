"""A program that works off one job while packages that a worker does not need are out of sight.

`worker_alone.py URL PACKAGE...`: the packages, and what they need, are in sight.
"""

import contextlib
import importlib
import importlib.metadata as metadata
import os
import re
import sys
from collections.abc import Iterator


def needed(names: list[str]) -> Iterator[str]:
    """These packages, and those that they need."""
    seen, left = set[str](), list(names)
    while left:
        name = left.pop()
        if name in seen:
            continue
        seen.add(name)
        yield name
        with contextlib.suppress(metadata.PackageNotFoundError):  # one for another system
            for need in metadata.requires(name) or ():
                if "extra ==" not in need:
                    left += re.findall(r"^[\w.-]+", need)


class Hidden:
    """Finds modules of other packages before anybody else does, and says that there are none."""

    def __init__(self, names: list[str]) -> None:
        sight = {"zq-queue", *needed(names)}
        owners = metadata.packages_distributions()
        self.modules = {module for module, of in owners.items() if not sight & set(of)}

    def find_spec(self, name: str, _path: object = None, _target: object = None) -> None:
        if name.partition(".")[0] in self.modules:
            raise ModuleNotFoundError(name, name=name)


def main(url: str, *names: str) -> None:
    hidden = Hidden(list(names))
    assert {"uvloop", "fastavro", "rich", "h2"} <= hidden.modules
    sys.meta_path.insert(0, hidden)
    sys.path.insert(0, ".")
    os.environ["ZQ_URL"] = url

    from zq.cli.group import main as zq

    job = importlib.import_module("sums").add.enqueue_sync(1, 2)
    zq(["worker", "sums:app", "--burst", "--log-level", "error"], standalone_mode=False)
    print(job.result_sync())


if __name__ == "__main__":
    main(*sys.argv[1:])
