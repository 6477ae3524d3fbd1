"""Long answers and frames, made in slices: others are served between them."""

import struct
from collections.abc import Callable, Mapping
from typing import TypeVar

from zq.engine.turns import Slices, Turns
from zq.http.api.endpoints import answer
from zq.http.transport.answer import Answer
from zq.wire.codecs import JSON, MSGPACK, BodyCodec
from zq.wire.packing import pack, repacking, stored_texts, without_head

SMALL = 16 * 1024
"""Jobs with payloads of fewer bytes together are packed in one go."""


ROWS = 250
"""The documents in a slice of a list."""

T = TypeVar("T")


class Packer:
    """Makes answers of what clients have stored."""

    def __init__(self, turns: Turns) -> None:
        self._turns = turns

    async def answer(
        self,
        document: object,
        codec: BodyCodec,
        status: int = 200,
        headers: dict[str, str] | None = None,
    ) -> Answer:
        """Make an answer from a document that may have stored JSON. The document is used up."""
        if codec is not MSGPACK:
            return answer(document, codec, status, headers)
        await self.fill(document)
        own = {"Content-Type": codec.content_type}
        return Answer(status, pack(document), own | (headers or {}))

    async def listed(
        self,
        name: str,
        rows: list[T],
        document: Callable[[T], object],
        codec: BodyCodec,
        others: Mapping[str, object] | None = None,
        headers: dict[str, str] | None = None,
    ) -> Answer:
        """Make an answer whose field `name` has a document for each row; `others` come first.

        There is no stored JSON among them. The rows are used up, for it takes long to let go of
        many at once.
        """
        is_json = codec is JSON
        encode = codec.encode if is_json else pack
        slices = Slices(self._turns)
        around = encode({**(others or {}), name: []})
        parts: list[bytes] = []
        if not is_json:
            parts += around[:-1], struct.pack(">BI", 0xDD, len(rows))
        while rows:
            part = encode(list(map(document, rows[:ROWS])))
            del rows[:ROWS]
            parts.append(part[1:-1] if is_json else without_head(part))
            await slices.count(len(part))
        # There is no second copy of the whole.
        body = b"".join((around[:-2], b",".join(parts), b"]}") if is_json else parts)
        return Answer(200, body, {"Content-Type": codec.content_type} | (headers or {}))

    async def fill(self, documents: object) -> None:
        """Replace all stored JSON in documents. Raises `msgspec.DecodeError`."""
        slices = Slices(self._turns)
        for stored in stored_texts(documents):
            pieces = repacking(str(stored.text, "utf-8"))
            while True:
                try:
                    # A byte may take as long as a step: it may be the name of a field.
                    await slices.count(next(pieces))
                except StopIteration as done:
                    stored.become(done.value)
                    break
