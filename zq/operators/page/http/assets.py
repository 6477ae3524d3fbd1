"""The files of the page, read once: each with its type, its bytes, and these as gzip.

All scripts and styles lie below one segment of the path, which is a hash of them all. So a script
names another by its plain name, and a browser may keep each for ever.
"""

import gzip
import hashlib
import re
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import NamedTuple

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
