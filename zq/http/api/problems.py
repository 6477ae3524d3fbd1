"""Errors as answers: the table from the error tree to statuses, and the shape of the body."""

from aiohttp import web

from zq.http.api.endpoints import (
    FORMATS,
    NotAcceptable,
    PlainRefusal,
    UnsupportedMediaType,
    answer,
    answer_codec,
)
from zq.http.door import Statuses, status_in
from zq.http.guard import CHALLENGE
from zq.http.transport.answer import Answer
from zq.http.transport.bodies import UnsupportedCoding
from zq.model import errors
from zq.model.errors import ZqError
from zq.wire.codecs import JSON, BodyCodec

STATUSES: Statuses = {
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
    UnsupportedCoding: 415,
    errors.Unprocessable: 422,
    errors.LimitReached: 429,
    errors.Internal: 500,
    errors.NotOnThisStore: 501,
    errors.ServiceUnavailable: 503,
    errors.StorageFull: 507,
}
"""The statuses at the native door. Other doors differ in a few."""

CODE_HEADER = "Zq-Error"
"""This header has the error's stable code. The body keeps the shape of Zizq's API."""

INDEX_HEADER = "Zq-Error-Index"
"""This header has the index of the job in a bulk that is at fault."""


def problem(error: ZqError, codec: BodyCodec) -> Answer:
    """An error as an answer in the format that the client accepts."""
    # A message may quote bytes of a header that are not text; an answer cannot.
    body: dict[str, object] = {"error": error.message.encode(errors="replace").decode()}
    headers = {CODE_HEADER: error.code}
    if error.index is not None:
        headers[INDEX_HEADER] = str(error.index)
    if isinstance(error, PlainRefusal):
        text = error.message.encode(errors="replace")
        return Answer(400, text, {"Content-Type": "text/plain; charset=utf-8", **headers})
    if isinstance(error, NotAcceptable | UnsupportedMediaType):
        body["supported"] = error.supported
    if isinstance(error, UnsupportedCoding):
        body["supported"] = FORMATS
    if isinstance(error, errors.NotCancellable | errors.NotFinished | errors.NotDead):
        body["status"] = error.status
    if isinstance(error, errors.RecordsGone):
        body["min_seq"] = error.min_seq
    body |= error.details
    return completed(answer(body, codec, status_in(STATUSES, error), headers), error)


def completed(refusal: Answer, error: ZqError) -> Answer:
    """An answer with what an error adds at every door: when to try again, how to sign in."""
    headers = dict(refusal.headers)
    if isinstance(error, errors.ServiceUnavailable | errors.LimitReached):
        headers["Retry-After"] = str(error.retry_after_s)
    if isinstance(error, errors.Unauthorized):
        headers["WWW-Authenticate"] = CHALLENGE
    refusal.headers = headers
    if isinstance(error, errors.RequestTimeout):
        # The rest of the request may come or not, so nothing can follow it.
        refusal.closes = True
    return refusal


def error_codec(request: web.BaseRequest | None) -> BodyCodec:
    """The format of an error: the accepted one, or JSON if there is none."""
    if request is None:
        return JSON
    try:
        return answer_codec(request)
    except NotAcceptable:
        return JSON
