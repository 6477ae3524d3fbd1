"""Writes jobs into the outbox, on a connection of the caller and in its transaction."""

from collections.abc import Awaitable, Callable, Iterable
from typing import Any, ParamSpec, Protocol, TypeVar, overload

import msgspec

from zq.client.errors import InvalidOption, InvalidPayload
from zq.client.formats import JSON
from zq.client.queue import Queue
from zq.client.task import Call, Task, payload_of
from zq.client.values import Submission
from zq.outbox.adapters import adapter_of


class OutboxJob(Submission, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """The job of a row. Other programs may write rows too, with any field of the server."""


def document_of(job: Submission) -> str:
    """The document for a job. Raises `InvalidOption` or `InvalidPayload`."""
    if job.batch is not None:
        raise InvalidOption("batch: rows of the outbox are numbered, and jobs that fold cannot be")
    return JSON.encode(job).decode()


def job_of(document: bytes | str) -> OutboxJob:
    """The job of a document. Raises `InvalidPayload`."""
    try:
        return _decoder.decode(document)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise InvalidPayload(f"the document is not a job: {error}") from error


_decoder = msgspec.json.Decoder(OutboxJob)


P = ParamSpec("P")
T = TypeVar("T")


class Asynchronous(Protocol):
    """A connection or a session whose statements are awaited."""

    @property
    def execute(self) -> Callable[..., Awaitable[Any]]: ...


@overload  # Every connection is also an object: the first overload that fits holds.
def enqueue(  # type: ignore[overload-overlap]
    connection: Asynchronous, to: Task[P, Any], /, *args: P.args, **kwargs: P.kwargs
) -> Awaitable[None]: ...
@overload
def enqueue(  # type: ignore[overload-overlap]
    connection: Asynchronous, to: Queue[T, Any], id: str, payload: T, /
) -> Awaitable[None]: ...
@overload
def enqueue(connection: object, to: Task[P, Any], /, *args: P.args, **kwargs: P.kwargs) -> None: ...
@overload
def enqueue(connection: object, to: Queue[T, Any], id: str, payload: T, /) -> None: ...
def enqueue(connection: Any, to: Any, /, *args: Any, **kwargs: Any) -> Any:
    """Write one job in the connection's transaction. After the commit, a relay enqueues it.

    `to` is a task, with the arguments of its function, or a queue by message id, with an id and a
    payload. On an asynchronous connection this is awaited. Raises `InvalidOption`, and TypeError if
    the function does not accept the arguments.
    """
    if isinstance(to, Queue):
        job = to.job(*args, **kwargs)
    else:
        job = _task(to).job(to.args(*args, **kwargs).payload)
    return _write(connection, [document_of(job)])


@overload
def enqueue_many(  # type: ignore[overload-overlap]
    connection: Asynchronous, task: Task[P, Any], calls: Iterable[Call[P]], /
) -> Awaitable[None]: ...
@overload
def enqueue_many(connection: object, task: Task[P, Any], calls: Iterable[Call[P]], /) -> None: ...
def enqueue_many(
    connection: Any, task: Task[Any, Any], calls: Iterable[Call[Any]], /
) -> Awaitable[None] | None:
    """Write a job for each call, ``task.args(…)``, in their order and in one statement."""
    jobs = [_task(task).job(payload_of(call)) for call in calls]
    return _write(connection, [document_of(job) for job in jobs])


@overload
def create_table(  # type: ignore[overload-overlap]
    connection: Asynchronous, /
) -> Awaitable[None]: ...
@overload
def create_table(connection: object, /) -> None: ...
def create_table(connection: Any, /) -> Awaitable[None] | None:
    """Create the tables of the outbox if they do not exist, in the connection's transaction."""
    return adapter_of(connection).create(connection)


def _task(to: Any) -> Task[Any, Any]:
    if not isinstance(to, Task):
        raise InvalidOption(
            f"{to!r} is neither a task nor a queue: write outbox.enqueue(connection, task, …)"
        )
    return to


def _write(connection: Any, documents: list[str]) -> Awaitable[None] | None:
    return adapter_of(connection).write(connection, JSON.encode(documents).decode())
