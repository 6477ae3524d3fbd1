"""The servers between which data is copied: requests to one door, and their errors."""

import json
import sys
import urllib.error
import urllib.parse
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from zq.model.parts import in_parts

TIMEOUT_S = 60

PART_BYTES = 2**20
"""The size of a request with many items. A server refuses large ones, and a page may be larger."""

Doc = dict[str, Any]


class MovingError(Exception):
    """A server refused a request, or cannot be reached. The text says which, and what it said."""


def _opener() -> urllib.request.OpenerDirector:
    """Speaks http and https only, and follows no redirect: it would take the token elsewhere."""
    opener = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.ProxyHandler(),
        urllib.request.HTTPHandler(),
        urllib.request.HTTPSHandler(),
        urllib.request.HTTPDefaultErrorHandler(),
        urllib.request.HTTPErrorProcessor(),
    ):
        opener.add_handler(handler)
    return opener


class MovingServer:
    """One server, and the prefix of the door that is spoken to."""

    _opener = _opener()

    def __init__(self, url: str, prefix: str, token: str | None) -> None:
        self._url = url.rstrip("/") + prefix
        self._headers = {"Content-Type": "application/json"}
        if token:
            self._headers["Authorization"] = f"Bearer {token}"

    def ask(self, method: str, path: str, body: object = None, *, missing: object = None) -> Any:
        """The document of an answer; `missing` if there is no such route. Raises `MovingError`."""
        url = self._url + path
        if not url.startswith(("http://", "https://")):
            raise MovingError(f"{url!r} is no server: begin it with http:// or https://")
        if not path.startswith("/"):
            raise MovingError(f"the server names {path!r} as its next page, which is no path")
        try:
            data = None if body is None else encoded(body)
            request = urllib.request.Request(url, data, self._headers, method=method)
            with self._opener.open(request, timeout=TIMEOUT_S) as reply:
                return json.loads(reply.read() or b"null")
        except urllib.error.HTTPError as error:
            said = error.read(2_000).decode(errors="replace")
            if error.code == 404 and missing is not None:
                return missing
            if elsewhere := error.headers.get("Location"):
                said = f"it leads to {elsewhere}: name the server's own address ({said})"
            raise MovingError(f"{method} {url}: {error.code} {said}") from None
        except (OSError, ValueError) as error:
            raise MovingError(f"{method} {url}: {error}") from None


def encoded(body: object) -> bytes:
    """The body of a request. Escapes would make texts up to three times as long as they were."""
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()


def parts(items: Iterable[Doc]) -> Iterator[list[Doc]]:
    """Items in parts for a request each: of up to `PART_BYTES`, or of one item."""
    return in_parts(items, lambda item: len(encoded(item)), PART_BYTES)


def quoted(name: str) -> str:
    """A name as a part of a path."""
    return urllib.parse.quote(name, safe="")


def told(move: Callable[[], Counter[str]]) -> int:
    """Move, and print what was done. Return the exit code."""
    try:
        done = move()
    except MovingError as error:
        print(f"stopped: {error}", file=sys.stderr)
        return 1
    for kind, count in sorted(done.items()):
        print(f"{count:>8} {kind}")
    return 0
