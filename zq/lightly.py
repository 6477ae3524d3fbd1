"""Imports aiohttp's server without its client, and without what else is of no use to a server.

`import aiohttp` runs a list of imports for programs of all kinds: the client, its connections, its
cookies, applications, files. That is 5 MB and a quarter of a start. A server needs the parts that
parse and answer requests, and these import what clients need once more: mail's headers, proxies,
the names of HTML's characters, TLS. That is 7 MB, and 3 MB where another library loads TLS.

Two kinds of stand-ins keep all of that out of the process. A module that stands in for one becomes
whole when it is asked for anything. A name that stands in for one of another module imports that
module when it is used.
"""

import sys
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import module_from_spec
from types import ModuleType
from typing import Any

_WEB = {
    "BaseRequest": "aiohttp.web_request",
    "RequestKey": "aiohttp.web_request",
    "Request": "aiohttp.web_request",
    "RequestHandler": "aiohttp.web_protocol",
    "Response": "aiohttp.web_response",
    "Server": "aiohttp.web_server",
    "StreamResponse": "aiohttp.web_response",
    "json_response": "aiohttp.web_response",
}
"""The names of `aiohttp.web` that every server uses, and where they are."""

_SELDOM = ("asyncio.sslproto", "mimetypes", "pickle", "shutil", "ssl", "tempfile")
"""Modules that a server imports, and uses seldom or never."""

_NAMED = (
    *("aiohttp.multipart", "email.message", "email.parser", "email.policy", "email.utils"),
    *("html", "tempfile", "urllib.request"),
)
"""Modules of which aiohttp's server has names that zq never comes to."""

_lock = threading.RLock()
"""Held while a module is made whole."""

_whole: set[str] = set()
"""The modules that are whole, or become so."""


def import_aiohttp_lightly(*, with_tls: bool = True) -> None:
    """Import aiohttp's server, and let its modules be imported one by one.

    Call it before asyncio is imported: its module for TLS comes when a connection needs that.
    Without TLS, hashes are computed by Python's own modules, since OpenSSL alone takes 4 MB.
    """
    if "aiohttp" in sys.modules:
        return
    if not with_tls:
        with _instead({"_hashlib": None}):
            import_module("hmac")
    # The version is told to servers by clients alone, and they import the whole.
    _stand_in("aiohttp", {}).__version__ = ""  # type: ignore[attr-defined]
    sys.modules["aiohttp"].__dict__["web"] = _stand_in("aiohttp.web", _WEB)
    for name in _SELDOM:
        if name not in sys.modules:
            _stand_in(name, {})
    # asyncio looks at each socket whether it is one of these. Until the module is whole, none is.
    sys.modules["ssl"].__dict__.setdefault("SSLSocket", type("SSLSocket", (), {}))
    asyncio = import_module("asyncio")
    # Its validators and converters are for programs that use it.
    if "attr" not in sys.modules:
        attr = _stand_in("attr", {})
        attr.__dict__["s"] = import_module("attr._make").attrs
    # A few errors of the client have bases among those of TLS, which only names them.
    with _instead({"ssl": None}):
        import_module("aiohttp.client_exceptions")
    with _instead({name: _Names(name) for name in _NAMED}):
        import_module("aiohttp.web_protocol")
    # An import that finds a module makes it a name of its package only where it has loaded it.
    asyncio.__dict__["sslproto"] = sys.modules["asyncio.sslproto"]


def import_msgspec_lightly() -> None:
    """Import msgspec without the backports of typing. It looks for them in every Python."""
    with _instead({"typing_extensions": None}):
        import_module("msgspec")


class _Late:
    """What a module has by a name: it is imported when this is called, or asked for an attribute.

    A class may be derived from it, and is made as late.
    """

    def __init__(self, name: str, bases: tuple["str | _Late", ...], namespace: Any = None) -> None:
        self._made_of = (name, bases, namespace)
        self._found: Any = None

    def _real(self) -> Any:
        if self._found is None:
            name, bases, namespace = self._made_of
            (base,) = bases
            if isinstance(base, _Late):
                self._found = type(name, (base._real(),), namespace)
            else:
                self._found = getattr(import_module(base), name)
        return self._found

    def __call__(self, *args: Any, **options: Any) -> Any:
        return self._real()(*args, **options)

    def __instancecheck__(self, instance: object) -> bool:
        return isinstance(instance, self._real())

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)  # what Python asks of a base
        return getattr(self._real(), name)


class _Names(ModuleType):
    """A module of which each name is late."""

    def __getattr__(self, name: str) -> _Late:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Late(name, (self.__name__,))


@contextmanager
def _instead(modules: Mapping[str, ModuleType | None]) -> Iterator[None]:
    """Let imports find these modules, or none."""
    before = {name: sys.modules[name] for name in modules if name in sys.modules}
    sys.modules.update(modules)  # type: ignore[arg-type]  # None is how a module is forbidden
    try:
        yield
    finally:
        for name in modules:
            del sys.modules[name]
        sys.modules.update(before)


def _stand_in(name: str, places: Mapping[str, str]) -> ModuleType:
    """A module that has its submodules and the names of `places`, and becomes whole for others."""
    spec = _spec(name)
    loader = spec.loader
    assert loader is not None
    module = module_from_spec(spec)

    def find(wanted: str) -> object:
        """Called for each name that the module does not have yet."""
        if wanted.startswith("__"):
            raise AttributeError(wanted)
        if wanted in places:
            found: object = getattr(import_module(places[wanted]), wanted)
            setattr(module, wanted, found)
            return found
        inside = f"{name}.{wanted}"
        if PathFinder.find_spec(inside, spec.submodule_search_locations or ()):
            return import_module(inside)
        with _lock:
            if name not in _whole:
                _whole.add(name)
                loader.exec_module(module)
        if wanted not in module.__dict__:
            raise AttributeError(wanted)
        return module.__dict__[wanted]

    module.__dict__["__getattr__"] = find
    sys.modules[name] = module
    return module


def _spec(name: str) -> ModuleSpec:
    """Where a module is. Unlike importlib's search, this imports none of the packages above it."""
    package = name.rpartition(".")[0]
    places: Iterable[str] | None = None
    if package:
        places = _spec(package).submodule_search_locations
    spec = PathFinder.find_spec(name, None if places is None else list(places))
    assert spec is not None
    return spec
