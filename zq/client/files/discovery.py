"""Makes queues with handlers from a folder of files.

The name of a file is the name of its queue: `mail.py`, or `profile.fifo.py` for a queue with order.
The file has a function `handle(payload)` or `handle(payload, job)`, and may have
`config = zq.QueueConfig(…)`. A file whose name begins with an underscore is not a queue.
`_middleware.py` may have a `middleware`, or a list of them, around all jobs of the folder, and
`warmup()`, which is called before any work.
"""

import importlib
import importlib.util
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from zq.client.amounts import Seconds, milliseconds
from zq.client.core import Core, QueueHandler, check_function
from zq.client.errors import DiscoveryError, InvalidOption
from zq.client.files.queue import FIFO, FileQueue
from zq.client.files.registry import loading, queues
from zq.client.options import DEFAULTS, Backoff, Options, check, merge
from zq.client.payloads import taken_by

LONGEST_TIMEOUT_S = 900
MOST_CHARACTERS = 40

_NAME = re.compile(r"[A-Za-z0-9_-]+(\.fifo)?")


@dataclass(frozen=True)
class QueueConfig:
    """A file's settings for its jobs. `timeout` limits one execution: 1 to 900 seconds."""

    timeout: Seconds = 300.0
    max_attempts: int | None = None
    backoff: Backoff | None = None
    on_exception: Mapping[type[Exception], Backoff | Seconds | None] | None = None
    priority: int | None = None
    result_ttl: Seconds | None = None

    def __post_init__(self) -> None:
        if not 1000 <= milliseconds("timeout", self.timeout) <= LONGEST_TIMEOUT_S * 1000:
            raise InvalidOption(
                f"timeout: {self.timeout!r} is not between 1 and {LONGEST_TIMEOUT_S} seconds"
            )
        check(self.options)

    @property
    def options(self) -> Options:
        """The options that the file sets for jobs."""
        given: Any = {name: value for name, value in vars(self).items() if value is not None}
        options: Options = given
        return options


def discover(core: Core, folder: Path) -> list[FileQueue[Any]]:
    """Import the files of a folder. Return their queues. Raises `DiscoveryError` for the first bad
    one."""
    if not folder.is_dir():
        raise DiscoveryError(f"{folder}: this folder does not exist")
    package = _package(folder)
    wrapped = _middleware(package, folder / "_middleware.py")
    core.startup += wrapped.warmups
    found: dict[str, FileQueue[Any]] = {}
    for path in sorted(folder.glob("*.py")):
        if not path.name.startswith("_"):
            queue = _load(core, package, path, wrapped.around)
            alias = _alias(queue.name)
            if alias in found:
                raise DiscoveryError(f"{path}: {found[alias].name} is imported by the same name")
            found[alias] = queue
            queues.add(queue)
    return list(found.values())


@dataclass(frozen=True)
class _Wrapped:
    around: tuple[Any, ...] = ()
    warmups: tuple[Callable[[], Any], ...] = ()


def _load(core: Core, package: ModuleType, path: Path, around: tuple[Any, ...]) -> FileQueue[Any]:
    name = path.name.removesuffix(".py")
    if not _NAME.fullmatch(name) or len(name) > MOST_CHARACTERS:
        raise DiscoveryError(
            f"{path}: a queue's name consists of at most {MOST_CHARACTERS} letters, digits, - and"
            f" _, and may end in {FIFO}; names that begin with _ are skipped"
        )
    token = loading.set(FileQueue(core, name, merge(DEFAULTS, core.defaults)))
    try:
        module = _import(package, _alias(name), path)
    finally:
        loading.reset(token)
    handle = getattr(module, "handle", None)
    if not callable(handle):
        raise DiscoveryError(f"{path}: the function handle(payload) is missing")
    try:
        check_function(handle)
    except InvalidOption as error:
        raise DiscoveryError(f"{path}: {error.message}") from None
    config = getattr(module, "config", QueueConfig())
    if not isinstance(config, QueueConfig):
        raise DiscoveryError(
            f"{path}: config is not a zq.QueueConfig but a {type(config).__name__}"
        )
    options = merge(DEFAULTS, core.defaults, config.options)
    queue: FileQueue[Any] = FileQueue(core, name, options)
    try:
        convert = taken_by(f"{path}: the payload", handle)
    except InvalidOption as error:
        raise DiscoveryError(error.message) from None
    core.handlers[name] = QueueHandler(handle, convert, options, around)
    return queue


def _middleware(package: ModuleType, path: Path) -> _Wrapped:
    if not path.exists():
        return _Wrapped()
    module = _import(package, "_middleware", path)
    given = getattr(module, "middleware", ())
    around = tuple(given) if isinstance(given, list | tuple) else (given,)
    warmup = getattr(module, "warmup", None)
    for function in (*around, *([] if warmup is None else [warmup])):
        if not callable(function):
            raise DiscoveryError(f"{path}: {function!r} is not a function")
    return _Wrapped(around, () if warmup is None else (warmup,))


def _alias(name: str) -> str:
    """The name under which Python imports a file whose own name has a dot or a dash."""
    return name.replace(".", "_").replace("-", "_")


def _package(folder: Path) -> ModuleType:
    """The folder as a package, so that its files can import each other by their aliases."""
    name = folder.resolve().name.replace("-", "_")
    known = sys.modules.get(name)
    if known is not None and str(folder.resolve()) in list(getattr(known, "__path__", ())):
        return known
    if known is not None:
        raise DiscoveryError(f"{folder}: a module {name!r} exists already: rename the folder")
    package = ModuleType(name)
    package.__path__ = [str(folder.resolve())]
    sys.modules[name] = package
    return package


def _import(package: ModuleType, alias: str, path: Path) -> ModuleType:
    name = f"{package.__name__}.{alias}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except DiscoveryError:
        raise
    except Exception as error:
        del sys.modules[name]
        raise DiscoveryError(f"{path}: {type(error).__name__}: {error}") from error
    setattr(package, alias, module)
    return module
