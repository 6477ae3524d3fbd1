"""What operators do to one job and to workers, over every backend."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from conformance.site import Site

from zq.client.connect import connect
from zq.client.errors import BackendError, JobNotFound, Unavailable
from zq.client.formats import JSON, MSGPACK
from zq.client.values import Delivery, JobQuery, Submission, TakeRequest
from zq.features.schemas.client import ServerSchemas
from zq.features.trends.verbs import MARK
from zq.model.patching import Patch

from .conftest import Caller

UNKNOWN = "0" * 26


@pytest.fixture(params=["json", "msgpack", "blocking", "embedded"])
async def call(site: Site, tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[Caller]:
    kind: str = request.param
    url = f"sqlite://{tmp_path}/own" if kind == "embedded" else site.url
    backend = connect(url, codec=MSGPACK if kind == "msgpack" else JSON)
    yield Caller(backend.blocking if kind == "blocking" else backend, kind == "blocking")
    await backend.blocking.close()
    await backend.close()


def new(payload: object) -> Submission:
    return Submission("q", "t", payload)


async def test_a_job_is_changed_and_deleted(call: Caller) -> None:
    (job,) = await call(call.backend.enqueue([new(1)]))
    changed = await call(call.backend.operations.change(job.id, Patch(queue="r", priority=7)))
    assert (changed.id, changed.queue, changed.priority) == (job.id, "r", 7)
    changed = await call(call.backend.operations.change(job.id, Patch(ready_at=2**42)))
    assert (changed.status, changed.ready_at, changed.queue) == ("scheduled", 2**42, "r")
    await call(call.backend.operations.delete(job.id))
    for verb in (
        call.backend.operations.delete(job.id),
        call.backend.operations.change(UNKNOWN, Patch(priority=1)),
    ):
        with pytest.raises(JobNotFound):
            await call(verb)


async def test_a_schema_holds_for_new_jobs_until_it_is_dropped(call: Caller) -> None:
    schemas = ServerSchemas(call.backend.ask)
    with pytest.raises(BackendError):
        await call(schemas.get("q"))
    avro = {"type": "array", "items": "int"}
    assert (await call(schemas.put("q", avro))).version == 1
    assert (await call(schemas.get("q"))).schema == avro
    with pytest.raises(BackendError):
        await call(call.backend.enqueue([new("no number")]))
    for _ in range(2):
        await call(schemas.drop("q"))
    assert len(await call(call.backend.enqueue([new("no number")]))) == 1


async def test_matching_jobs_are_deleted_up_to_the_preview(call: Caller) -> None:
    await call(call.backend.enqueue([new(n) for n in range(3)]))
    query = JobQuery(queues=("q",))
    seen = await call(call.backend.sweeps.preview("delete", query))
    assert (seen.count, seen.exact) == (3, True)
    (late,) = await call(call.backend.enqueue([new("late")]))
    bound = JobQuery(queues=("q",), upto=seen.upto)
    assert await call(call.backend.sweeps.delete(bound, reason="a test")) == 3
    listed = await call(call.backend.jobs(query))
    assert [job.id for job in listed.jobs] == [late.id]


async def test_a_worker_is_listed_and_dropped(call: Caller) -> None:
    if call.blocks:
        pytest.skip("a blocking backend offers no streams")
    operations = call.backend.operations
    held = {job.id for job in await call.backend.enqueue([new(1), new(2)])}
    stream = await call.backend.take(TakeRequest(("q",), 2, "w/1"))
    await stream.deliveries()
    (worker,) = await operations.workers()
    assert (worker.id, worker.queues, worker.prefetch) == ("w/1", ["q"], 2)
    assert held.issuperset(worker.held) and worker.held
    (dropped,) = await operations.drop("w/1")
    assert dropped.id == "w/1"
    with pytest.raises(Unavailable):
        while True:
            await stream.deliveries()
    await stream.close()
    other = await call.backend.take(TakeRequest(("q",), 2, "other"))
    again: set[str] = set()
    while again != held:
        again |= {job.id for job in await other.deliveries() if isinstance(job, Delivery)}
    await other.close()
    with pytest.raises(BackendError, match="no worker with this id"):
        await operations.drop("w/1")


async def test_a_moment_gets_a_name(call: Caller) -> None:
    mark = await call(call.backend.ask(MARK, {"text": "release 1.8.2"}))
    assert mark.text == "release 1.8.2"
    with pytest.raises(BackendError, match="1 to 200 characters"):
        await call(call.backend.ask(MARK, {"text": " "}))
