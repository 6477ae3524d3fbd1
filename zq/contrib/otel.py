"""OpenTelemetry: spans of enqueues and of executions, linked by the trace context of jobs.

The spans follow the conventions for messaging: ``send QUEUE`` of the kind producer, around the
request, and ``process QUEUE`` of the kind consumer, around the handler.
"""

from collections.abc import (
    AsyncGenerator,
    Awaitable,
    Callable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import aclosing, contextmanager
from typing import Any, cast

import msgspec
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import Link, Span, SpanKind, Status, StatusCode, Tracer, TracerProvider
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from zq.client.app import App
from zq.client.backend import Backend
from zq.client.running import Running, current
from zq.client.values import JobOutcome, StoredJob, Submission

_propagator = TraceContextTextMapPropagator()


def instrument(app: App, tracer_provider: TracerProvider | None = None) -> None:
    """Make spans of what the app enqueues, and of what its workers execute.

    Without a `tracer_provider` the program's own is used. A job that has a `traceparent` keeps it.
    An app that makes spans already goes on with its provider.
    """
    tracer = trace.get_tracer("zq", tracer_provider=tracer_provider)
    if not isinstance(app.backend, _Traced):
        app.core.backend = cast(Backend, _Traced(app.backend, tracer))
    if any(getattr(each, "__module__", None) == __name__ for each in app.middleware):
        return

    async def around(job: Running[Any], call_next: Callable[[], Awaitable[Any]]) -> Any:
        with _processing(tracer, job):
            return await call_next()

    app.middleware = (around, *app.middleware)


def traceparent() -> str | None:
    """The trace context of the current span, for jobs that are sent in another way.

    ``task.options(traceparent=…)`` with it is for rows of an outbox.
    """
    carrier: dict[str, str] = {}
    _propagator.inject(carrier)
    return carrier.get("traceparent")


@contextmanager
def _processing(tracer: Tracer, job: Running[Any]) -> Iterator[None]:
    """The span of an execution, within the trace of whoever has enqueued the job."""
    context = _context_of(job)
    origin = trace.get_current_span(context).get_span_context()
    attributes: dict[str, Any] = {
        **_attributes("process", job.queue),
        "messaging.message.id": job.id,
        "zq.job.type": job.type,
        "zq.job.attempt": job.attempt,
    }
    with (
        tracer.start_as_current_span(
            f"process {job.queue}",
            context,
            SpanKind.CONSUMER,
            attributes,
            links=[Link(origin)] if origin.is_valid else [],
        ) as span,
        _errors(span),
    ):
        yield


def _context_of(job: Running[Any]) -> Context:
    """The trace context that the job came with."""
    return _propagator.extract({} if job.traceparent is None else {"traceparent": job.traceparent})


@contextmanager
def _sending(tracer: Tracer, jobs: Sequence[Submission]) -> Iterator[tuple[Span, list[Submission]]]:
    """The span of a request, and the jobs with its trace context."""
    queues = {job.queue for job in jobs}
    queue = queues.pop() if len(queues) == 1 else None
    attributes = _attributes("send", queue)
    if len(jobs) != 1:
        attributes["messaging.batch.message_count"] = len(jobs)
    name = "send" if queue is None else f"send {queue}"
    running = current.get(None)
    outside = not trace.get_current_span().get_span_context().is_valid
    # What follows a job in a chain is sent when the span of its execution has ended.
    context = _context_of(running) if running is not None and outside else None
    with tracer.start_as_current_span(name, context, SpanKind.PRODUCER, attributes) as span:
        own = traceparent()
        # A job that another one enqueues has the trace context of that one's producer.
        inherited = None if running is None else running.traceparent
        with _errors(span):
            yield (
                span,
                [
                    msgspec.structs.replace(job, traceparent=own)
                    if own is not None and job.traceparent in (None, inherited)
                    else job
                    for job in jobs
                ],
            )


def _attributes(operation: str, queue: str | None) -> dict[str, Any]:
    found: dict[str, Any] = {
        "messaging.system": "zq",
        "messaging.operation.name": operation,
        "messaging.operation.type": operation,
    }
    return found if queue is None else {**found, "messaging.destination.name": queue}


@contextmanager
def _errors(span: Span) -> Iterator[None]:
    """Note on the span how the block has failed. OpenTelemetry notes ordinary exceptions itself."""
    try:
        yield
    except BaseException as error:
        kind = type(error)
        module = "" if kind.__module__ == "builtins" else f"{kind.__module__}."
        span.set_attribute("error.type", f"{module}{kind.__qualname__}")
        if not isinstance(error, Exception):
            span.set_status(Status(StatusCode.ERROR, f"{module}{kind.__qualname__}"))
        raise


class _Traced:
    """A backend whose enqueues have spans."""

    def __init__(self, backend: Backend, tracer: Tracer) -> None:
        self._backend = backend
        self._tracer = tracer

    def __getattr__(self, name: str) -> Any:
        return getattr(self._backend, name)

    def __reduce__(self) -> tuple[Any, tuple[Backend]]:
        return _same, (self._backend,)  # a copy in another process makes no spans

    @property
    def blocking(self) -> "_Traced":
        blocking = self._backend.blocking
        return self if blocking is self._backend else _Traced(blocking, self._tracer)

    async def enqueue(self, jobs: Sequence[Submission]) -> list[StoredJob]:
        with _sending(self._tracer, jobs) as (span, traced):
            stored = await self._backend.enqueue(traced)
            if len(stored) == 1:
                span.set_attribute("messaging.message.id", stored[0].id)
            return stored

    async def enqueue_on(
        self, terms: Mapping[str, object], jobs: Sequence[Submission]
    ) -> list[StoredJob]:
        if not jobs:  # It asks for a number.
            return await self._backend.enqueue_on(terms, jobs)
        with _sending(self._tracer, jobs) as (_, traced):
            return await self._backend.enqueue_on(terms, traced)

    async def enqueue_each(
        self, batches: Iterable[Sequence[Submission]]
    ) -> AsyncGenerator[list[StoredJob], None]:
        # A batch is prepared while the one before is on its way: its span is over by then.
        def traced() -> Iterator[list[Submission]]:
            for batch in batches:
                with _sending(self._tracer, batch) as (_, jobs):
                    prepared = jobs
                yield prepared

        async with aclosing(self._backend.enqueue_each(traced())) as stored:
            async for each in stored:
                yield each

    async def enqueue_and_wait(self, job: Submission, wait_ms: int) -> JobOutcome:
        with _sending(self._tracer, [job]) as (span, (traced,)):
            outcome = await self._backend.enqueue_and_wait(traced, wait_ms)
            if outcome.job is not None:
                span.set_attribute("messaging.message.id", outcome.job.id)
            return outcome


def _same(backend: Backend) -> Backend:
    return backend
