"""A run of the pipeline in a process of its own, which kills itself and its Java by SIGKILL.

python -m spark.mortal FOLDER LAKE STEP POINT
"""

import os
import signal
import sys
from pathlib import Path

from spark.faults import mortal
from spark.sessions import quick_session
from zq.spark.pipeline import lake, run
from zq.spark.pipeline.progress import RunProgress


def die() -> None:
    os.killpg(os.getpgrp(), signal.SIGKILL)


def main() -> None:
    folder, path, step, point = sys.argv[1:]
    lake.Files = mortal(step, point, die)  # type: ignore[arg-type,attr-defined]
    session = quick_session(Path(f"{path}.spark"))
    run(session, [folder], path, RunProgress(print))


main()
