"""Rows that are no jobs: they fail the write, or go to a table beside it."""

import re
from collections.abc import Mapping
from typing import Any

import msgspec
from pyarrow import fs

from zq.spark.options import SourceError

MOST_NAMED = 5


class BadRows:
    """The bad rows of one task.

    `folder` is where they go, as JSON lines of `row` (JSON text) and `error`; a task that runs
    again writes the same file again. Without one, the first few fail the task, named.
    """

    def __init__(self, folder: str | None, task: str) -> None:
        self.count = 0
        self._folder = folder
        self._task = task
        self._lines: list[bytes] = []
        self._named: list[str] = []

    def add(self, number: int, row: Mapping[str, Any], reason: str) -> None:
        """Note a row. Raises `SourceError` once there are enough to name."""
        self.count += 1
        text = msgspec.json.encode(row, enc_hook=str).decode()
        if self._folder is not None:
            self._lines.append(msgspec.json.encode({"row": text, "error": reason}) + b"\n")
            return
        self._named.append(f"row {number} {text[:200]}: {reason}")
        if self.count >= MOST_NAMED:
            self._fail()

    def close(self) -> None:
        """Write what there is. Raises `SourceError` where rows are bad and have nowhere to go."""
        if self._folder is None:
            if self.count:
                self._fail()
            return
        if not self._lines:
            return
        system, path = fs.FileSystem.from_uri(self._folder)
        system.create_dir(path, recursive=True)
        name = re.sub(r"[^A-Za-z0-9-]", "-", self._task)
        draft, final = f"{path}/.{name}.tmp", f"{path}/bad-{name}.json"
        with system.open_output_stream(draft) as file:
            file.write(b"".join(self._lines))
        system.move(draft, final)

    def _fail(self) -> None:
        raise SourceError(
            "rows are no jobs: " + "; ".join(self._named) + ". Rows before them may be stored"
            " already; set badRows=DIR to put such rows aside instead, and writeId=NAME to be able"
            " to run the write again without storing any row twice"
        )
