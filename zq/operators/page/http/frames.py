"""Frames of a live view: the whole document, or what has changed since the frame before.

A change is a merge patch (RFC 7396), so no value of a document is null. A frame is encoded once for
all its readers.
"""

from functools import cached_property

import msgspec

Document = dict[str, object]


class ViewFrame:
    """A document at one moment, the number of its frame, and the document before it."""

    def __init__(self, number: int, at: int, document: Document, before: Document | None) -> None:
        self.number = number
        self.document = document
        self._at = at
        self._before = before

    @cached_property
    def document_alone(self) -> bytes:
        """The whole document, for somebody who wants no events."""
        return self._body("full", self.document)

    @cached_property
    def whole(self) -> bytes:
        """The event with the whole document."""
        return _event(self.document_alone)

    @cached_property
    def change(self) -> bytes:
        """The event with what has changed since the frame before."""
        return _event(self._body("patch", changed(self._before or {}, self.document)))

    def _body(self, name: str, content: object) -> bytes:
        return msgspec.json.encode({"seq": self.number, "at": self._at, name: content})


def _event(body: bytes) -> bytes:
    return b"data: " + body + b"\n\n"


def changed(before: Document, after: Document) -> Document:
    """The merge patch from one document to another; empty if they are equal."""
    patch: Document = {name: None for name in before if name not in after}
    for name, value in after.items():
        old = before.get(name)
        if isinstance(old, dict) and isinstance(value, dict):
            if inner := changed(old, value):
                patch[name] = inner
        elif old != value or name not in before:
            patch[name] = value
    return patch
