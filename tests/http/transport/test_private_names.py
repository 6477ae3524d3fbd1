"""What zq uses of aiohttp that aiohttp does not promise, and which name a new version lacks."""

import ast
import inspect
import sys
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from pkgutil import walk_packages

import pytest
from aiohttp.streams import StreamReader
from aiohttp.web_protocol import RequestHandler

import zq.http

KNOWN: dict[type, set[str]] = {
    RequestHandler: {
        *("_buffer_paused", "_current_request", "_drain_helper", "_force_close"),
        *("_keepalive", "_keepalive_handle", "_keepalive_timeout", "_logging_enabled", "_loop"),
        *("_make_error_handler", "_manager", "_message_tail", "_messages"),
        *("_msg_queue_resume_size", "_next_keepalive_close_time", "_parser", "_paused"),
        *("_pause_transport_reading", "_process_keepalive", "_reading_paused", "_request_count"),
        *("_resume_reading_if_drained", "_resume_transport_reading", "_upgraded"),
    },
    StreamReader: {"_buffer", "_read_nowait_chunk", "_size"},
}
"""The private names by the class of aiohttp that zq's own class is made of. Before a name comes in
here, look whether a public one does."""

CASES = [(kind, name) for kind, names in KNOWN.items() for name in sorted(names)]


def private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def defined(kind: type) -> set[str]:
    """The private names that the classes of aiohttp below this one define, or set on themselves."""
    found: set[str] = set()
    for base in kind.__mro__:
        if not base.__module__.startswith("aiohttp"):
            continue
        found |= {*vars(base), *getattr(base, "__slots__", ())}
        for node in ast.walk(ast.parse(inspect.getsource(sys.modules[base.__module__]))):
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
                found.add(node.attr)
    return set(filter(private, found))


def classes() -> Iterator[tuple[type, ast.ClassDef]]:
    """Each class of `zq.http` that is made of a class of aiohttp, with its source."""
    for module in walk_packages(zq.http.__path__, "zq.http."):
        if module.name.endswith(".zttp_codec") and find_spec("zttp") is None:
            continue  # an extra brings it, which the fast tests do not need
        imported = import_module(module.name)
        text = Path(str(imported.__file__)).read_text(encoding="utf-8")
        for node in ast.parse(text).body:
            if isinstance(node, ast.ClassDef):
                kind = getattr(imported, node.name)
                if any(base.__module__.startswith("aiohttp") for base in kind.__mro__):
                    yield kind, node


def used() -> dict[type, set[str]]:
    """The private names of aiohttp's that each class reads, sets or replaces."""
    found: dict[type, set[str]] = {}
    for kind, source in classes():
        base = next(base for base in kind.__mro__ if base.__module__.startswith("aiohttp"))
        theirs = defined(base)
        for node in ast.walk(source):
            name = node.attr if isinstance(node, ast.Attribute) else getattr(node, "name", "")
            if isinstance(name, str) and name in theirs:
                found.setdefault(base, set()).add(name)
    return found


@pytest.mark.parametrize(("kind", "name"), CASES, ids=[f"{k.__name__}.{n}" for k, n in CASES])
def test_aiohttp_still_has_each_private_name_that_zq_uses(kind: type, name: str) -> None:
    assert name in defined(kind), f"aiohttp's {kind.__name__} has no {name} any more"


def test_every_private_name_that_zq_uses_is_known() -> None:
    assert used() == KNOWN
