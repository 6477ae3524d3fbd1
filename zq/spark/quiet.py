"""Keeps off the screen what Java says of itself while Spark starts.

Java and Spark's launcher warn of modules and log levels before any setting of Spark's has a say.
What they write is held back until Spark has started, and shown only if it does not; later on
warnings of Java's own are left out, and all else passes.
"""

import os
import re
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

JAVAS_OWN = re.compile(rb"WARNING: |[\w-]+ \d+-Bit Server VM warning: ")

LAST_WORDS_S = 5.0
"""How long a Java that did not start may take to say why."""


class _Relay:
    """Lines from a pipe to where standard error goes."""

    def __init__(self, pipe: int, error: int) -> None:
        self._pipe = pipe
        self._error = error
        self._held: list[bytes] | None = []
        self._lock = threading.Lock()
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def release(self, show: bool) -> None:
        """Let lines pass from now on, and show those held back if that is wanted."""
        with self._lock:
            for line in (self._held or []) if show else []:
                os.write(self._error, line)
            self._held = None

    def _run(self) -> None:
        with os.fdopen(self._pipe, "rb") as lines:
            for line in lines:
                with self._lock:
                    if self._held is not None:
                        self._held.append(line)
                    elif not JAVAS_OWN.match(line):
                        os.write(self._error, line)


@contextmanager
def starting_quietly() -> Iterator[None]:
    """Start Java within: it writes its standard error, for as long as it lives, through a relay."""
    sys.stderr.flush()
    error = os.dup(2)
    reading, writing = os.pipe()
    os.dup2(writing, 2)
    os.close(writing)
    relay = _Relay(reading, error)
    started = False
    try:
        yield
        started = True
    finally:
        sys.stderr.flush()
        os.dup2(error, 2)
        if not started:
            # A Java that has ended closes its end of the pipe.
            relay.thread.join(LAST_WORDS_S)
        relay.release(show=not started)
