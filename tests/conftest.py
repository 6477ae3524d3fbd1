"""A running server for any test."""

import functools
import gc
import importlib.util
import logging
import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import durations
import forked
import httpx
import pytest
from conformance.site import Site
from conformance.streams import PATIENCE_S
from hypothesis import settings
from tiers import ROOT, is_fast

# Whoever runs the tests in the background has it ignored, and what they start would ignore it too.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# The threads of a gRPC client would otherwise go on in what a later test forks, and end it.
os.environ["GRPC_ENABLE_FORK_SUPPORT"] = "0"

# What tests start would otherwise compile all of zq each time, which costs as much as the rest of
# a start.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# httpx looks for this package at each request, and a search that fails goes through all of the
# path: a twelfth of the time of a conformance test.
if importlib.util.find_spec("sniffio") is None:
    sys.modules["sniffio"] = None  # type: ignore[assignment]


# A busy disk may pause for longer than the five seconds for which httpx waits.
for _each in ("connect", "read", "write", "pool"):
    setattr(httpx._config.DEFAULT_TIMEOUT_CONFIG, _each, PATIENCE_S)

# Each client of httpx would otherwise read all authorities of the world, which takes a processor
# longer than to start a server.
httpx._transports.default.create_ssl_context = functools.cache(  # type: ignore[attr-defined]
    httpx._config.create_ssl_context
)

forked.install()

JUST_STARTED_S = 120.0
"""So long after the start of its machine a device may take its time to connect."""

_WORKED = pytest.StashKey[float]()
"""What this process had taken of processors when its last test ended, or before its first."""


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "settings(**overrides): settings of the test's server")
    config.addinivalue_line("markers", "every_library: the test is about all libraries of HTTP")
    # A change is judged by the same examples each time. The long tier, and whoever gives a seed,
    # look for others.
    explores = config.option.markexpr == "long" or config.getoption("hypothesis_seed") is not None
    if not explores:
        os.environ.setdefault("CRASH_SEED", "1")
    # How long an example takes says nothing on a machine that others use too.
    settings.register_profile("zq", deadline=None, derandomize=not explores)
    settings.load_profile("zq")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Import nothing else where only fast tests are asked for: libraries may be missing."""
    if config.getoption("markexpr") != "fast" or not collection_path.is_relative_to(ROOT):
        return None
    inside = collection_path / "test" if collection_path.is_dir() else collection_path
    return None if is_fast(inside) else True


def pytest_sessionstart(session: pytest.Session) -> None:
    """Let no test meet the pause of a device whose machine has just started."""
    if not session.config.option.collectonly:
        up_s = time.clock_gettime(time.CLOCK_BOOTTIME)
        time.sleep(max(0.0, JUST_STARTED_S - up_s))


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Iterator[None]:
    """Look for no garbage among modules and tests: there are millions of objects, and all stay."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()
        session.stash[_WORKED] = durations.processor_s()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if hasattr(config, "workerinput"):
        durations.slowest_first(items)
    for item in items:
        if item.get_closest_marker("long") is not None:
            item.add_marker(pytest.mark.timeout(0))
        elif is_fast(item.path):
            item.add_marker("fast")


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> Iterator[None]:
    """Tell the report how long a processor was at work for a test, its fixtures included."""
    try:
        yield
    finally:
        if item.config.getoption("xmlpath"):
            # It falls when a browser ends, which does not wait for its own processes.
            worked = max(durations.processor_s(), item.session.stash[_WORKED])
            item.user_properties.append(
                (durations.WORK, f"{worked - item.session.stash[_WORKED]:.2f}")
            )
            item.session.stash[_WORKED] = worked


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Let `--dist loadfile` give a worker what belongs together, such as files for one Spark."""
    if config.getoption("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling

    scheduler = LoadFileScheduling(config, log)
    scheduler._split_scope = durations.unit_of
    return scheduler


@pytest.fixture(autouse=True)
def _root_logger_restored() -> Iterator[None]:
    """A command that runs inside a test sets up the log, and the next test begins as the first."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    for handler in root.handlers:
        if handler not in handlers:
            handler.close()
    root.handlers[:] = handlers
    root.setLevel(level)


@pytest.fixture
def http2_engine() -> str:
    """The library that serves HTTP/2. Where it matters, a directory's tests run for each."""
    return "h2"


@pytest.fixture
async def site(
    tmp_path: Path, http2_engine: str, request: pytest.FixtureRequest
) -> AsyncIterator[Site]:
    """A started server on a directory of its own. `@pytest.mark.settings(…)` changes settings.

    A function as a value makes it, given a directory for files of its own.
    """
    marker = request.node.get_closest_marker("settings")
    given = marker.kwargs if marker else {}
    settings = {name: made(tmp_path) if callable(made) else made for name, made in given.items()}
    site = Site(tmp_path / "data", {"http2_engine": http2_engine, **settings})
    await site.start()
    yield site
    await site.stop()
