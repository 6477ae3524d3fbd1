"""Compressed bodies of requests and answers, a part at a time: other requests pass in between."""

import asyncio
import zlib

from aiohttp import hdrs, web

from zq.http.transport.answer import Answer, Response
from zq.http.transport.bodies import Bodies
from zq.model.errors import InvalidRequest

GZIP = "gzip"
PART = 256 * 1024
"""How many bytes are compressed or restored in one go, in about a millisecond."""

WORTH_IT = 1024
"""A smaller answer stays as it is."""

_GZIP_BITS = 31
"""What zlib calls the form of gzip."""


def is_gzip(request: web.BaseRequest) -> bool:
    """Whether the body of a request is compressed."""
    return request.headers.get(hdrs.CONTENT_ENCODING, "").strip().lower() == GZIP


async def restored(body: bytes, bodies: Bodies, *, reserved: bool) -> bytes:
    """The body as it was before it was compressed. `bodies` counts its new size then.

    Raises `InvalidRequest`, and what `Bodies.grow` does. Whatever it raises, the body is released.
    """
    parts: list[bytes] = []
    held, size = len(body), 0
    rest = body
    decoder = zlib.decompressobj(_GZIP_BITS)
    try:
        while rest and not decoder.eof:
            part = decoder.decompress(rest, PART)
            rest = decoder.unconsumed_tail
            parts.append(part)
            size += len(part)
            if size > held:
                bodies.grow(size - held, held, reserved=reserved)
                held = size
            if not part and not decoder.eof:
                break
            await asyncio.sleep(0)
        if not decoder.eof or decoder.unused_data:
            raise InvalidRequest("the body is not whole as gzip, or goes on behind its end")
    except zlib.error:
        bodies.release(held)
        raise InvalidRequest("the body is no gzip, as its Content-Encoding says") from None
    except BaseException:
        bodies.release(held)
        raise
    bodies.release(held - size)
    return b"".join(parts)


async def compressed(request: web.BaseRequest, response: Response) -> Response:
    """The same answer, compressed where it is worth it and the client takes that."""
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


def _takes_gzip(request: web.BaseRequest) -> bool:
    for choice in request.headers.get(hdrs.ACCEPT_ENCODING, "").lower().split(","):
        coding, _, weight = choice.partition(";")
        if coding.strip() == GZIP:
            return weight.replace(" ", "") not in ("q=0", "q=0.0", "q=0.00", "q=0.000")
    return False
