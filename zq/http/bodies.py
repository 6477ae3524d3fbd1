"""Request bodies: how large one may be, and how much of all of them memory may hold."""

from aiohttp import web

from zq.model.errors import InboxFull, TooLarge

RESERVE = 4
"""A quarter more than the bound is kept for what is no enqueue: acknowledgements get through."""


class Bodies:
    """Counts the bytes of bodies from their announcement until their request is done."""

    def __init__(self, max_body: int, max_bytes: int) -> None:
        self._max_body = max_body
        self._max_bytes = max_bytes
        self._held = 0

    async def read(self, request: web.Request, *, reserved: bool) -> bytes:
        """The whole body; give it back with `release`. `reserved` may use the reserve too.

        Raises `TooLarge` or `InboxFull`, as soon as that is known.
        """
        length = request.content_length
        if length is not None:
            self._take(length, 0, reserved)
            try:
                return await request.read()
            except BaseException:
                self.release(length)
                raise
        return await self._read_chunked(request, reserved)

    def release(self, size: int) -> None:
        """A request that held `size` bytes is done."""
        self._held -= size

    async def _read_chunked(self, request: web.Request, reserved: bool) -> bytes:
        chunks: list[bytes] = []
        size = 0
        try:
            while chunk := await request.content.readany():
                self._take(len(chunk), size, reserved)
                size += len(chunk)
                chunks.append(chunk)
        except BaseException:
            self.release(size)
            raise
        return b"".join(chunks)

    def _take(self, more: int, have: int, reserved: bool) -> None:
        if have + more > self._max_body:
            raise TooLarge(
                f"the body is larger than {self._max_body} bytes: send fewer jobs a request, or"
                " raise --max-body"
            )
        bound = self._max_bytes + (self._max_bytes // RESERVE if reserved else 0)
        # A single body within --max-body always has a chance, however small the bound is.
        if self._held and self._held + more > bound:
            raise InboxFull(
                "the requests under way hold as much memory as they may: try again shortly, or"
                " raise --max-inbox-bytes"
            )
        self._held += more
