"""Answers and frames in MessagePack, made in slices: others are served between them."""

from zq.engine.turns import Slices, Turns
from zq.http.transport.answer import Answer
from zq.http.zizq.endpoints import answer
from zq.wire.codecs import MSGPACK, BodyCodec
from zq.wire.packing import pack, repacking, stored_texts

SMALL = 16 * 1024
"""Jobs with payloads of fewer bytes together are packed in one go."""


class Packer:
    """Puts MessagePack in the place of the JSON that clients have stored."""

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
