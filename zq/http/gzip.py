"""Compressed bodies of requests and answers, a part at a time: other requests pass in between."""

import asyncio
import zlib
from collections.abc import Iterator

from aiohttp import hdrs, web

from zq.http.transport.answer import Answer, Response
from zq.http.transport.bodies import Bodies
from zq.model.errors import InvalidRequest

GZIP = "gzip"
PART = 128 * 1024
"""How many bytes are compressed, or come of restoring, in one go: in about a millisecond."""

TAKEN = PART // 8
"""How many compressed bytes are given to the decoder in one go."""

WORTH_IT = 1024
"""A smaller answer stays as it is."""

_GZIP_BITS = 31
"""The number by which zlib names the form of gzip."""


def is_gzip(request: web.BaseRequest) -> bool:
    """True if the body of a request is compressed."""
    return request.headers.get(hdrs.CONTENT_ENCODING, "").strip().lower() == GZIP


async def restored(body: bytes, bodies: Bodies, *, reserved: bool) -> bytes:
    """The body as it was before it was compressed. `bodies` counts its new size then.

    Raises `InvalidRequest`, and what `Bodies.grow` does. Whatever it raises, the body is released.
    """
    parts: list[bytes] = []
    held, size, since_turn = len(body), 0, 0
    try:
        for part in _restored_parts(body):
            parts.append(part)
            size += len(part)
            if size > held:
                bodies.grow(size - held, held, reserved=reserved)
                held = size
            since_turn += TAKEN + len(part)
            if since_turn >= PART:
                since_turn = 0
                await asyncio.sleep(0)
    except BaseException:
        bodies.release(held)
        raise
    bodies.release(held - size)
    return b"".join(parts)


async def compressed(request: web.BaseRequest, response: Response) -> Response:
    """An answer, compressed where it is worth it and the client takes that."""
    if not isinstance(response, Answer) or response.sent or len(response.body) < WORTH_IT:
        return response
    headers = {**response.headers, "Vary": "Accept-Encoding"}
    if not _takes_gzip(request):
        response.headers = headers
        return response
    encoder = zlib.compressobj(1, wbits=_GZIP_BITS)
    parts: list[bytes] = []
    for start in range(0, len(response.body), PART):
        parts.append(encoder.compress(response.body[start : start + PART]))
        await asyncio.sleep(0)
    answer = Answer(
        response.status, b"".join([*parts, encoder.flush()]), {**headers, "Content-Encoding": GZIP}
    )
    answer.closes = response.closes
    return answer


def _restored_parts(body: bytes) -> Iterator[bytes]:
    """The parts of a compressed body, some of them empty. Raises `InvalidRequest`.

    What a step leaves of its input is copied, so it gets little of the body.
    """
    decoder = zlib.decompressobj(_GZIP_BITS)
    for start in range(0, len(body), TAKEN):
        rest = body[start : start + TAKEN]
        while rest and not decoder.eof:
            try:
                yield decoder.decompress(rest, PART)
            except zlib.error:
                raise InvalidRequest("the body is no gzip, as its Content-Encoding says") from None
            rest = decoder.unconsumed_tail
        if decoder.eof:
            if start + TAKEN < len(body) or decoder.unused_data:
                break
            return
    raise InvalidRequest("the body is not whole as gzip, or goes on behind its end")


def _takes_gzip(request: web.BaseRequest) -> bool:
    for choice in request.headers.get(hdrs.ACCEPT_ENCODING, "").lower().split(","):
        coding, _, weight = choice.partition(";")
        if coding.strip() == GZIP:
            return weight.replace(" ", "") not in ("q=0", "q=0.0", "q=0.00", "q=0.000")
    return False
