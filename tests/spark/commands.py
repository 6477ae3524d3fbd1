"""`zq pipeline` in a process of its own, as users run it."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

ONE_AFTER_THE_OTHER = """
import json, sys
from zq.cli.group import main

for words in json.loads(sys.argv[1]):
    main(["pipeline", *words], standalone_mode=False)
"""


def zq(
    *arguments: str | Path, path: str | None = None, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Run the command; `path` is the PATH it has."""
    return _run("-m", "zq.cli", "pipeline", *map(str, arguments), path=path, **variables)


def zq_twice(
    first: Sequence[str | Path], second: Sequence[str | Path], **variables: str
) -> subprocess.CompletedProcess[str]:
    """Run two commands in one process, for which Java starts once."""
    both = json.dumps([[*map(str, words)] for words in (first, second)])
    return _run("-c", ONE_AFTER_THE_OTHER, both, **variables)


def _run(
    *words: str, path: str | None = None, **variables: str
) -> subprocess.CompletedProcess[str]:
    environment = {name: text for name, text in os.environ.items() if name != "PYSPARK_PYTHON"}
    environment |= {"SPARK_DRIVER_MEMORY": "1g", **variables}
    if path is not None:
        environment["PATH"] = path
    return subprocess.run(
        [sys.executable, *words],
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
    )


def configured(folder: Path, settings: dict[str, str]) -> str:
    """A new folder of Spark's configuration, for SPARK_CONF_DIR."""
    folder.mkdir()
    lines = [f"{name} {value}\n" for name, value in settings.items()]
    folder.joinpath("spark-defaults.conf").write_text("".join(lines))
    return str(folder)
