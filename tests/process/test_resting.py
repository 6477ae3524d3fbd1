"""What a server has in memory while nobody asks for anything: its modules and its threads."""

import asyncio
import json
import os
import re
import subprocess
import sys
from importlib.metadata import packages_distributions
from pathlib import Path
from urllib.request import Request, urlopen

import pytest

from process.server import SCRIPT, clean_environment, running

MOST_THREADS = 4

LIBRARIES = {
    *("aiohttp", "aiosqlite", "attr", "caio", "click", "idna", "msgpack", "msgspec"),
    *("multidict", "propcache", "typing_extensions", "uvloop", "yarl"),
}
"""The libraries that a start loads. Each of the others comes with the first request for it."""

LATER = (
    *("aiohttp.client", "aiohttp.connector", "aiohttp.web_app", "aiohttp.web_urldispatcher"),
    *("zq.client", "zq.features.forward.peer_link", "zq.features.forward.peer_pusher"),
    *("zq.http.transport.h2.connection"),
    *("zq.store.sqlite.check", "zq.store.sqlite.salvage", "argparse"),
    *("zq.cli.every", "zq.doors.queue_ti.http", "zq.doors.topics.http"),
    *("zq.http.api.description", "zq.http.api.rest", "zq.operators.admin.http.routes"),
    *(
        "zq.operators.ops.http",
        "zq.operators.ops.http_metrics",
        "zq.operators.page.http",
        "zq.wire.archive",
    ),
    *("zq.logfile", "zq.features.crons.model_walk"),
    *("difflib", "gzip", "importlib.metadata", "logging.handlers", "multiprocessing.pool"),
    *("tarfile", "tomllib", "wsgiref", "zipfile", "zoneinfo"),
    *("aiohttp.multipart", "attr.converters", "attr.validators", "calendar", "email"),
    *("html.entities", "http.client", "lzma", "mimetypes", "pickle", "shutil", "tempfile"),
    "urllib.request",
)
"""What a start once loaded, and what costs memory on a small device."""

MOST_MODULES = 690
"""The names that a start looks for, and a few more for other versions of Python and libraries."""


@pytest.mark.parametrize("flags", [(), ("--preset", "edge")])
def test_a_start_loads_what_jobs_need_and_nothing_else(
    tmp_path: Path, flags: tuple[str, ...]
) -> None:
    """The list of modules holds when a server has started and stored its first job."""
    root = ("--root-dir", str(tmp_path), *flags)
    words = [sys.executable, "-X", "importtime", "-m", "zq.cli", *SCRIPT, *root]
    with (tmp_path / "imports").open("w+") as imports:
        server = subprocess.Popen(
            words, env=clean_environment(), stdout=subprocess.PIPE, stderr=imports, text=True
        )
        assert server.stdout is not None
        log = (json.loads(line) for line in server.stdout)
        url = next(line["fields"]["server"] for line in log if "server" in line["fields"])
        with urlopen(f"{url}/health", timeout=60) as answer:
            assert answer.status == 200
        job = b'{"queue": "mail", "type": "hello", "payload": 1}'
        with urlopen(Request(f"{url}/jobs", job, {"Content-Type": "application/json"})) as answer:
            assert answer.status == 201
        libraries = Path(f"/proc/{server.pid}/maps").read_text()
        server.terminate()
        server.communicate(timeout=60)
        imports.seek(0)
        # Names that were not found are in it, too.
        loaded = set(re.findall(r"^import time: .*\| +(\S+)$", imports.read(), re.MULTILINE))

    tried = {name.partition(".")[0] for name in loaded} - sys.stdlib_module_names
    installed = {name for name in packages_distributions() if not name.startswith("_")}
    assert tried & installed - {"zq", "backports"} <= LIBRARIES
    assert not [name for name in loaded for later in LATER if f"{name}.".startswith(f"{later}.")]
    assert len(loaded) <= MOST_MODULES
    # uvloop brings it. Else it comes with the first connection that has TLS.
    assert not flags or "libcrypto" not in libraries


async def test_a_server_that_rests_has_four_threads(tmp_path: Path) -> None:
    """The event loop, the log, the writer, and one to spare: readers end when nobody reads."""
    async with running(tmp_path) as server:
        threads = f"/proc/{server.pid}/task"
        async with asyncio.timeout(60):
            while len(os.listdir(threads)) > MOST_THREADS:  # noqa: ASYNC110, PTH208
                await asyncio.sleep(0.1)
