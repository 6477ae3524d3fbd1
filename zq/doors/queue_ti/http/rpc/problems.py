"""Errors as statuses of gRPC."""

from grpc import StatusCode

from zq.model import errors
from zq.model.errors import ZqError
from zq.model.queue_errors import QueueNotRegistered

CODES: dict[type[ZqError], StatusCode] = {
    errors.InvalidRequest: StatusCode.INVALID_ARGUMENT,
    errors.Unauthorized: StatusCode.UNAUTHENTICATED,
    errors.Forbidden: StatusCode.PERMISSION_DENIED,
    errors.NotFound: StatusCode.NOT_FOUND,
    errors.RequestTimeout: StatusCode.DEADLINE_EXCEEDED,
    errors.Conflict: StatusCode.FAILED_PRECONDITION,
    errors.Gone: StatusCode.NOT_FOUND,
    # Sending it again does not help, as RESOURCE_EXHAUSTED would promise.
    errors.TooLarge: StatusCode.INVALID_ARGUMENT,
    errors.Unprocessable: StatusCode.INVALID_ARGUMENT,
    QueueNotRegistered: StatusCode.FAILED_PRECONDITION,
    errors.LimitReached: StatusCode.RESOURCE_EXHAUSTED,
    errors.Internal: StatusCode.INTERNAL,
    errors.NotOnThisStore: StatusCode.UNIMPLEMENTED,
    errors.ServiceUnavailable: StatusCode.UNAVAILABLE,
    errors.StorageFull: StatusCode.RESOURCE_EXHAUSTED,
}


def code_of(error: ZqError) -> StatusCode:
    """The status of an error. One without a status has that of its nearest ancestor."""
    return next(CODES[kind] for kind in type(error).__mro__ if kind in CODES)
