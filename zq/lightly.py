"""Imports aiohttp's server without its client, and without what else its packages have.

`import aiohttp` runs a list of imports for programs of all kinds: the client, its connections, its
cookies, applications, files. That is 5 MB and a quarter of a start. A server needs the parts that
parse and answer requests. Whoever asks a package for anything else gets all of it then.
"""

import sys
import threading
from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec, module_from_spec
from types import ModuleType

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

_lock = threading.RLock()
"""Held while a module is made whole."""

_whole: set[str] = set()
"""The modules that are whole, or become so."""


def import_aiohttp_lightly() -> None:
    """Let the modules of aiohttp be imported one by one. Call it before the first of them."""
    if "aiohttp" not in sys.modules:
        # The version is told to servers by clients alone, and they import the whole.
        _stand_in("aiohttp", {}).__version__ = ""  # type: ignore[attr-defined]
        sys.modules["aiohttp"].__dict__["web"] = _stand_in("aiohttp.web", _WEB)


def _stand_in(name: str, places: Mapping[str, str]) -> ModuleType:
    """A module that has its submodules and the names of `places`, and becomes whole for others."""
    spec = find_spec(name)
    assert spec is not None
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
        if spec.submodule_search_locations and find_spec(f"{name}.{wanted}"):
            return import_module(f"{name}.{wanted}")
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
