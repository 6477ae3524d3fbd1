"""Errors as answers: the one table from the error tree to statuses, and the one shape of a body."""

from http import HTTPStatus

from aiohttp import web

from zq.http.answer import Answer
from zq.http.credentials import CHALLENGE
from zq.http.negotiation import NotAcceptable, UnsupportedMediaType, answer_codec
from zq.model import errors
from zq.model.errors import ZqError
from zq.wire.codecs import JSON, Codec

STATUSES: dict[type[ZqError], int] = {
    errors.InvalidRequest: 400,
    errors.Unauthorized: 401,
    errors.Forbidden: 403,
    errors.NotFound: 404,
    NotAcceptable: 406,
    errors.RequestTimeout: 408,
    errors.Conflict: 409,
    errors.Gone: 410,
    errors.TooLarge: 413,
    UnsupportedMediaType: 415,
    errors.NotBuilt: 422,
    errors.Unprocessable: 422,
    errors.LimitReached: 429,
    errors.Internal: 500,
    errors.Unavailable: 503,
    errors.StorageFull: 507,
}
"""An error that is not named has the status of its nearest named ancestor."""

CODE_HEADER = "Zq-Error"
"""Carries the error's stable code; the body keeps to the API's shape."""


def status_of(error: ZqError) -> int:
    """The HTTP status of an error."""
    return next(STATUSES[kind] for kind in type(error).__mro__ if kind in STATUSES)


def problem(error: ZqError, codec: Codec) -> Answer:
    """An error as an answer in the format that the client accepts."""
    # A message may cite bytes of a header that are no text; an answer cannot.
    body: dict[str, object] = {"error": error.message.encode(errors="replace").decode()}
    headers = {CODE_HEADER: error.code}
    if isinstance(error, NotAcceptable | UnsupportedMediaType):
        body["supported"] = error.supported
    if isinstance(error, errors.NotCancellable | errors.NotFinished | errors.NotDead):
        body["status"] = error.status
    if isinstance(error, errors.RecordsGone):
        body["min_seq"] = error.min_seq
    if isinstance(error, errors.Unavailable | errors.LimitReached):
        headers["Retry-After"] = str(error.retry_after_s)
    if isinstance(error, errors.Unauthorized):
        headers["WWW-Authenticate"] = CHALLENGE
    response = answer(body, codec, status_of(error), headers)
    if isinstance(error, errors.RequestTimeout):
        # What is left of the request may come or not: nothing can follow it.
        response.closes = True
    return response


def last_words(error: ZqError) -> bytes:
    """An error as the bytes of an HTTP/1.1 answer, where there is no request to be answered."""
    response = problem(error, JSON)
    headers = {**response.all_headers(), "Connection": "close"}
    lines = [f"HTTP/1.1 {response.status} {HTTPStatus(response.status).phrase}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode() + response.body


def answer(
    document: object, codec: Codec, status: int = 200, headers: dict[str, str] | None = None
) -> Answer:
    """A document as an answer."""
    all_headers = {"Content-Type": codec.content_type}
    if headers:
        all_headers |= headers
    return Answer(status, codec.encode(document), all_headers)


def error_codec(request: web.BaseRequest) -> Codec:
    """The format of an error: the accepted one, or JSON where none is."""
    try:
        return answer_codec(request)
    except NotAcceptable:
        return JSON
