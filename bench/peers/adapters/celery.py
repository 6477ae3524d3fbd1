"""Celery on Redis."""

from __future__ import annotations

from typing import Any

from celery import Celery

from bench.peers.tally import PLACE, Deliberate, handle
from bench.peers.wire import TRIES

app = Celery("bench", broker=PLACE.address, backend=PLACE.address if PLACE.results else None)
app.conf.update(
    task_ignore_result=not PLACE.results,
    # By default Celery acknowledges a task before it runs, and loses it with the worker.
    task_acks_late=PLACE.mode == "always",
    broker_connection_retry_on_startup=True,
)


@app.task(bind=True, max_retries=TRIES - 1, name="noop")
def noop(task: Any, payload: dict[str, Any]) -> dict[str, Any] | None:
    try:
        return handle(payload)
    except Deliberate as error:
        raise task.retry(exc=error, countdown=0) from error


class Client:
    def enqueue(self, job: dict[str, Any], delay: float) -> None:
        noop.apply_async((job,), countdown=delay or None)

    def call(self, job: dict[str, Any]) -> None:
        noop.delay(job).get(timeout=30)

    def close(self) -> None:
        app.close()


def connect() -> Client:
    with app.producer_pool.acquire(block=True) as producer:
        producer.connection.ensure_connection()
    return Client()
