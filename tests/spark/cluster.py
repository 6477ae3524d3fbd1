"""A Spark cluster of its own: a master and workers, each a process with a directory of its own."""

import os
import re
import subprocess
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

import pyspark

from spark.sessions import JAVA

HOME = Path(pyspark.__file__).parent
PATIENCE_S = 300
"""Java takes a processor some seconds to start, and a busy machine gives them late."""


class Daemon:
    """One of Spark's daemons, from its first words that match `says` on."""

    def __init__(self, name: str, arguments: Sequence[str], place: Path, says: str) -> None:
        place.mkdir()
        self._name = name
        # It is told nothing of the Python that the tests run with.
        environment = {key: os.environ[key] for key in ("PATH", "JAVA_HOME") if key in os.environ}
        self._process = subprocess.Popen(
            [HOME / "bin" / "spark-class", f"org.apache.spark.deploy.{name}", *arguments],
            cwd=place,
            env=environment
            | {
                "SPARK_HOME": str(HOME),
                "SPARK_LOCAL_DIRS": str(place / "scratch"),
                "SPARK_LOCAL_IP": "127.0.0.1",
                "SPARK_DAEMON_MEMORY": "256m",
                "SPARK_DAEMON_JAVA_OPTS": JAVA,
            },
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._wanted = re.compile(says)
        self._said: list[str] = []
        self._found: re.Match[str] | None = None
        self._heard = threading.Event()
        self._listener = threading.Thread(target=self._listen)

    def __enter__(self) -> Self:
        self._listener.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.terminate()
        self._process.wait(PATIENCE_S)
        self._listener.join()

    def wait(self) -> str:
        """What the first group of `says` has matched. Fails where it never does."""
        self._heard.wait(PATIENCE_S)
        assert self._found is not None, f"{self._name} said:\n{''.join(self._said)}"
        return self._found[1]

    def _listen(self) -> None:
        """Until the daemon ends: a pipe that nobody empties would hold it up."""
        assert self._process.stderr is not None
        with self._process.stderr as lines:
            for line in lines:
                self._said.append(line)
                if self._found is None and (found := self._wanted.search(line)):
                    self._found = found
                    self._heard.set()
        self._heard.set()


@contextmanager
def cluster(place: Path, workers: int) -> Iterator[str]:
    """The master's address. Each worker has one core, and its files in `place/worker-N`."""
    with ExitStack() as stack:
        ports = ["--host", "127.0.0.1", "--port", "0", "--webui-port", "0"]
        at = r"Starting Spark master at (spark://\S+)"
        master = stack.enter_context(Daemon("master.Master", ports, place / "master", at))
        address = master.wait()
        # Else a worker's files lie where Spark is installed.
        here = ["--work-dir", "."]
        started = [
            stack.enter_context(
                Daemon(
                    "worker.Worker",
                    [*ports, "--cores", "1", "--memory", "1g", *here, address],
                    place / f"worker-{number}",
                    r"Successfully (registered) with master",
                )
            )
            for number in range(workers)
        ]
        for worker in started:
            worker.wait()
        yield address


def executors(place: Path) -> list[Path]:
    """The directories of the executors that a worker of this directory has started."""
    return [path.parent for path in place.glob("app-*/*/stderr")]
