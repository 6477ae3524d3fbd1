"""`zq pipeline` in a process of its own, as users run it."""

import os
import subprocess
import sys
from pathlib import Path


def zq(
    *arguments: str | Path, path: str | None = None, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Run the command; `path` is the PATH it has."""
    environment = {name: text for name, text in os.environ.items() if name != "PYSPARK_PYTHON"}
    environment |= {"SPARK_DRIVER_MEMORY": "1g", **variables}
    if path is not None:
        environment["PATH"] = path
    return subprocess.run(
        [sys.executable, "-m", "zq.cli", "pipeline", *map(str, arguments)],
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
