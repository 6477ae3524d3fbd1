"""A Spark session for the pipeline, for callers without one, and a quiet start.

Java and Spark's launcher warn of modules and log levels before any setting of Spark has an effect.
`starting_quietly` holds their output back until Spark has started, and shows it only if Spark does
not start. Later it drops Java's own warnings and passes everything else on.
"""

import os
import re
import shutil
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import SparkSession

from zq.spark.errors import JavaMissing

LOCAL = "local[*]"
SHUFFLE_PARTITIONS = max(32, 2 * (os.cpu_count() or 1))
"""The number of parts of a shuffle in local mode. Spark's default of 200 costs a quarter more
processor time if little is new."""

LOGGING = Path(__file__).with_name("log4j2.properties")

JAVAS_OWN = re.compile(rb"WARNING: |[\w-]+ \d+-Bit Server VM warning: ")

LAST_WORDS_S = 5.0
"""How long a Java that did not start may take to say why."""


def need_java() -> None:
    """Raise `JavaMissing` if Spark would find no Java."""
    home = os.environ.get("JAVA_HOME")
    if home is not None:
        if not Path(home, "bin", "java").is_file():
            raise JavaMissing
    elif shutil.which("java") is None:
        raise JavaMissing


def builder(master: str = LOCAL) -> SparkSession.Builder:
    """The settings that all sessions of the pipeline share; add to them and call `getOrCreate`.

    Workers run the same Python as the caller unless PYSPARK_PYTHON names another. Spark alone would
    take a Python from the PATH, and it refuses one of another version.
    """
    need_java()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    return (
        SparkSession.Builder()
        .master(master)
        .appName("zq pipeline")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.ui.showConsoleProgress", "false")
        # Errors would name lines of the pipeline, for half a dozen calls to Java an expression.
        .config("spark.python.sql.dataFrameDebugging.enabled", "false")
    )


def local_quiet(builder: SparkSession.Builder) -> SparkSession.Builder:
    """Settings for local mode: no web pages, no network, and a log of errors only.

    The driver does all the work there, so it gets the memory.
    """
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    return (
        builder.config("spark.ui.enabled", "false")
        .config("spark.driver.defaultJavaOptions", f"-Dlog4j2.configurationFile={LOGGING}")
        .config("spark.sql.shuffle.partitions", str(SHUFFLE_PARTITIONS))
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.memory", os.environ.get("SPARK_DRIVER_MEMORY", "4g"))
    )


class _Relay:
    """Passes lines from a pipe on to standard error."""

    def __init__(self, pipe: int, error: int) -> None:
        self._pipe = pipe
        self._error = error
        self._held: list[bytes] | None = []
        self._lock = threading.Lock()
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def release(self, show: bool) -> None:
        """Let lines pass from now on. With `show`, also print the lines that were held back."""
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
    """Start Java within this context. Its standard error goes through a relay from then on."""
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
            # When Java has ended, its end of the pipe is closed, and the relay ends too.
            relay.thread.join(LAST_WORDS_S)
        relay.release(show=not started)
