"""The page's files, held in memory, and their endpoints."""

import gzip
import hashlib
import re
from collections.abc import Callable
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import NamedTuple

from aiohttp import hdrs, web

from zq.http.door import PATH, Route
from zq.http.transport.answer import Answer
from zq.model.errors import NotFound

STATIC = files("zq.operators.page") / "static"

INDEX = "index.html"
VERSION_MARK = b"@version@"
"""Stands in the page for the hash."""

COMMENTS = re.compile(rb"^[ \t]*(?:/\*\*(?s:(?!\*/).)*\*/|//.*)[ \t]*\n", re.MULTILINE)
"""Comments on lines of their own: they are a third of the scripts, and for readers of the
source."""

TYPES = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
}


class Asset(NamedTuple):
    """One file as it is sent."""

    content_type: str
    plain: bytes
    zipped: bytes


class Assets:
    """The page, and the files that it names."""

    def __init__(self, directory: Traversable = STATIC) -> None:
        found = {
            file.name: COMMENTS.sub(b"", file.read_bytes())
            for file in sorted(directory.iterdir(), key=lambda file: file.name)
            if file.name.rpartition(".")[2] in TYPES
        }
        digest = hashlib.sha256()
        for name, content in found.items():
            digest.update(f"{name} {len(content)}\n".encode() + content)
        self.version = digest.hexdigest()[:16]
        page = found.pop(INDEX).replace(VERSION_MARK, self.version.encode())
        self.page = _asset(INDEX, page)
        self.named = {name: _asset(name, content) for name, content in found.items()}


def _asset(name: str, content: bytes) -> Asset:
    zipped = gzip.compress(content, 9, mtime=0)
    return Asset(TYPES[name.rpartition(".")[2]], content, zipped)


POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:;"
    " connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none';"
    " require-trusted-types-for 'script'; trusted-types 'none'"
)

SAFE = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
}
"""Every answer of the page has these headers."""

FOR_EVER = "public, max-age=31536000, immutable"
EACH_TIME = "no-cache"


class PageApi:
    """`/ui/` and `/ui/static/`. They need no key: they are the same for everybody."""

    def __init__(self, assets: Assets, expect: Callable[[], None]) -> None:
        """`expect` is told that somebody loads the page."""
        self._assets = assets
        self._expect = expect

    def routes(self) -> list[Route]:
        """Method, path, handler and scope of each endpoint."""
        return [
            Route("GET", "", self.slash, None),
            Route("GET", "/", self.page, None),
            Route("GET", "/static/{version}/{name}", self.file, None),
        ]

    async def slash(self, _request: web.BaseRequest) -> Answer:
        """The page lies one slash further, so that its links are relative to a directory."""
        return Answer(308, headers={**SAFE, "Location": "ui/"})

    async def page(self, request: web.BaseRequest) -> Answer:
        """The page itself. It names its files by their hash, so a browser asks for it each time."""
        self._expect()
        return _sent(request, self._assets.page, EACH_TIME)

    async def file(self, request: web.BaseRequest) -> Answer:
        """A script or the styles."""
        path = request[PATH]
        asset = self._assets.named.get(path["name"])
        if asset is None or path["version"] != self._assets.version:
            raise NotFound("this file belongs to another version of the page: load the page again")
        return _sent(request, asset, FOR_EVER)


def _sent(request: web.BaseRequest, asset: Asset, caching: str) -> Answer:
    headers = {
        **SAFE,
        "Content-Type": asset.content_type,
        "Cache-Control": caching,
        "Vary": "Accept-Encoding",
    }
    if "gzip" not in request.headers.get(hdrs.ACCEPT_ENCODING, ""):
        return Answer(200, asset.plain, headers)
    return Answer(200, asset.zipped, {**headers, "Content-Encoding": "gzip"})
