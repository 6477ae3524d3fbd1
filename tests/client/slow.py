"""A task in a module whose import takes long, in the processes that run it."""

import multiprocessing
import time

import zq

IMPORT_S = 5.5
"""Longer than its task may take."""

if multiprocessing.parent_process() is not None:
    time.sleep(IMPORT_S)

app = zq.App("http://127.0.0.1:1")


@app.task(queue="slow", timeout=5.0, max_attempts=1)
def quick() -> str:
    return "done"
