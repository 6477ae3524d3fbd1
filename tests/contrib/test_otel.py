"""Spans of producers and workers, as OpenTelemetry's exporter in memory gets them."""

import asyncio
from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode, format_span_id, format_trace_id

import zq
from zq.client.app import App
from zq.client.values import Submission
from zq.contrib import otel
from zq.testing import TestServer, run_until_idle
from zq.testing.plugin import Working


class Spans:
    """A provider, and the spans that have ended."""

    def __init__(self) -> None:
        self._exporter = InMemorySpanExporter()
        self.provider = TracerProvider()
        self.provider.add_span_processor(SimpleSpanProcessor(self._exporter))

    def named(self, name: str) -> list[ReadableSpan]:
        return [span for span in self._exporter.get_finished_spans() if span.name == name]

    def one(self, name: str) -> ReadableSpan:
        (span,) = self.named(name)
        return span


@pytest.fixture
def spans() -> Spans:
    return Spans()


@pytest.fixture
def app(zq_app: App, spans: Spans) -> App:
    otel.instrument(zq_app, spans.provider)
    return zq_app


def identity(span: ReadableSpan) -> tuple[int, int]:
    context = span.get_span_context()
    assert context is not None
    return context.trace_id, context.span_id


def parent_of(span: ReadableSpan) -> tuple[int, int] | None:
    return None if span.parent is None else (span.parent.trace_id, span.parent.span_id)


async def test_an_app_that_is_instrumented_twice_makes_each_span_once(
    app: App, spans: Spans
) -> None:
    @app.task(queue="q")
    async def work() -> None: ...

    otel.instrument(app, spans.provider)
    await work.enqueue()
    await run_until_idle(app)
    assert len(spans.named("send q")) == len(spans.named("process q")) == 1
    with app.use("sqlite://:memory:"):
        otel.instrument(app, spans.provider)
        await work.enqueue()
        await run_until_idle(app)
    assert len(spans.named("send q")) == len(spans.named("process q")) == 2


@pytest.mark.parametrize("kind", ["coroutine", "thread"])
async def test_an_execution_belongs_to_the_trace_of_its_producer(
    app: App, spans: Spans, kind: str
) -> None:
    tracer = spans.provider.get_tracer("shop")

    def within() -> str | None:
        with tracer.start_as_current_span("within"):
            return otel.traceparent()

    async def work() -> str | None:
        return within()

    task: Any = app.task(queue="mail", name="work")(work if kind == "coroutine" else within)
    with tracer.start_as_current_span("request"):
        job = await task.enqueue()
    (outcome,) = await run_until_idle(app)

    request, send = spans.one("request"), spans.one("send mail")
    process, inner = spans.one("process mail"), spans.one("within")
    assert parent_of(send) == identity(request)
    assert parent_of(process) == identity(send)
    assert [(link.context.trace_id, link.context.span_id) for link in process.links] == [
        identity(send)
    ]
    assert parent_of(inner) == identity(process)
    assert (send.kind, process.kind) == (SpanKind.PRODUCER, SpanKind.CONSUMER)
    common = {"messaging.system": "zq", "messaging.destination.name": "mail"}
    common["messaging.message.id"] = job.id
    assert send.attributes == common | {
        "messaging.operation.name": "send",
        "messaging.operation.type": "send",
    }
    assert process.attributes == common | {
        "messaging.operation.name": "process",
        "messaging.operation.type": "process",
        "zq.job.type": "work",
        "zq.job.attempt": 1,
    }
    trace, span = identity(inner)
    assert outcome.result.startswith(f"00-{format_trace_id(trace)}-{format_span_id(span)}-")


async def test_a_job_of_a_job_is_a_child_of_its_execution(app: App, spans: Spans) -> None:
    @app.task(queue="second")
    async def second() -> None: ...

    @app.task(queue="first")
    async def first() -> None:
        await second.enqueue()

    await first.enqueue()
    await run_until_idle(app)

    assert parent_of(spans.one("send second")) == identity(spans.one("process first"))
    assert parent_of(spans.one("process second")) == identity(spans.one("send second"))


async def test_the_steps_of_a_chain_are_one_trace(app: App, spans: Spans) -> None:
    @app.task(queue="first")
    async def first() -> int:
        return 1

    @app.task(queue="second")
    def second(n: int) -> int:
        return n

    with spans.provider.get_tracer("shop").start_as_current_span("request"):
        await zq.chain(zq.step(first), zq.step(second), zq.step(second))
    await run_until_idle(app)

    request, send = spans.one("request"), spans.one("send first")
    sent, done = spans.named("send second"), spans.named("process second")
    assert {identity(each)[0] for each in (*sent, *done)} == {identity(request)[0]}
    assert parent_of(sent[0]) == identity(send)
    assert [parent_of(each) for each in done] == [identity(each) for each in sent]


async def test_each_attempt_has_a_span_and_a_failure_its_error(
    app: App, spans: Spans, zq_server: TestServer
) -> None:
    @app.task(queue="q", max_attempts=2)
    async def fails() -> None:
        raise ValueError("it is broken")

    await fails.enqueue()
    await run_until_idle(app, raise_failures=False)
    await zq_server.advance(60)
    await run_until_idle(app, raise_failures=False)

    attempts = spans.named("process q")
    assert [(span.attributes or {})["zq.job.attempt"] for span in attempts] == [1, 2]
    assert {parent_of(span) for span in attempts} == {identity(spans.one("send q"))}
    for span in attempts:
        assert (span.attributes or {})["error.type"] == "ValueError"
        assert span.status.status_code == StatusCode.ERROR
        assert [event.name for event in span.events] == ["exception"]


async def test_an_execution_that_is_cancelled_has_failed(app: App, spans: Spans) -> None:
    @app.task(queue="q", max_attempts=1, timeout=0.01)
    async def hangs() -> None:
        await asyncio.Event().wait()

    await hangs.enqueue()
    await run_until_idle(app, raise_failures=False)
    span = spans.one("process q")
    assert span.status.status_code == StatusCode.ERROR
    assert (span.attributes or {})["error.type"] == "asyncio.exceptions.CancelledError"


async def test_a_refused_enqueue_is_a_failure(app: App, spans: Spans) -> None:
    with pytest.raises(Exception, match="priority"):
        await app.backend.enqueue([Submission("q", "t", None, priority=-1)])
    assert spans.one("send q").status.status_code == StatusCode.ERROR


async def test_many_jobs_and_blocking_callers_have_spans_too(app: App, spans: Spans) -> None:
    @app.task(queue="q")
    async def work(n: int) -> None: ...

    await work.enqueue_many([work.args(1), work.args(2)])
    await asyncio.to_thread(work.enqueue_sync, 3)
    many, one = spans.named("send q")
    assert (many.attributes or {})["messaging.batch.message_count"] == 2
    assert "messaging.message.id" in (one.attributes or {})
    await run_until_idle(app)
    parents = [parent_of(span) for span in spans.named("process q")]
    assert sorted(map(str, parents)) == sorted(map(str, [identity(many)] * 2 + [identity(one)]))


async def test_a_blocking_caller_awaits_no_listener(app: App) -> None:
    """It would fail at that, after the job is stored."""

    @app.on("enqueued")
    async def told(_: zq.Event) -> None:
        await asyncio.sleep(0)

    @app.task(queue="q")
    async def work() -> None: ...

    await asyncio.to_thread(work.enqueue_sync)
    await asyncio.to_thread(work.enqueue_many_sync, [work.args()])
    assert await app.backend.count() == 2


async def test_a_job_keeps_a_context_that_it_was_given(
    app: App, spans: Spans, zq_worker: Working
) -> None:
    @app.task(queue="q")
    async def work() -> None: ...

    own = f"00-{1:032x}-{2:016x}-01"
    async with zq_worker(app):
        await work.options(traceparent=own).call()
    assert parent_of(spans.one("process q")) == (1, 2)
