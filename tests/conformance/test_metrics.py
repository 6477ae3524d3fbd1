"""GET /metrics: every number matches the store or the events so far."""

import time

import pytest
from documents import region
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from store.rig import only_sqlite

import zq
from zq.features.budgets.metrics import MOST_BUDGETS
from zq.http.metrics import REST, markdown
from zq.operators.ops.http_metrics import MOST_QUEUES, every_metric

from .batches import batched
from .client import JSON, Client, Wire, new_job
from .metrics import Metrics, Scraper
from .test_budgets import IN_FLIGHT
from .test_budgets import put as put_budget

METRICS = [metric for metric in every_metric() if not metric.door]


@pytest.fixture
def wire() -> Wire:
    """The same, whatever format jobs come in."""
    return JSON


def test_the_documents_hold_the_table() -> None:
    assert region("metrics") == markdown(METRICS), (
        "run `python -m zq.operators.ops.http_metrics` and paste the table"
    )


async def test_a_scrape_has_what_the_table_names_and_the_process(scrape: Scraper) -> None:
    families = (await scrape()).families
    expected = {m.name.removesuffix("_total"): (m.kind, m.help) for m in METRICS}
    found = {name: (f.type, f.documentation) for name, f in families.items() if name[:3] == "zq_"}
    assert found == expected
    assert "process_resident_memory_bytes" in families


async def test_jobs_are_counted_by_queue_and_status(client: Client, scrape: Scraper) -> None:
    for status, count in [("scheduled", 1), ("ready", 2), ("completed", 1), ("dead", 3)]:
        for _ in range(count):
            await client.make(status, queue=status)
    await client.in_flight(queue="held")
    expected = {
        ("zq_jobs", "scheduled", "scheduled"): 1,
        ("zq_jobs", "ready", "ready"): 2,
        ("zq_jobs", "completed", "completed"): 1,
        ("zq_jobs", "dead", "dead"): 3,
        ("zq_jobs", "held", "in_flight"): 1,
    }
    assert jobs_in(await scrape()) == expected


def jobs_in(metrics: Metrics) -> dict[tuple[str, ...], float]:
    return {key: n for key, n in metrics.values.items() if key[0] == "zq_jobs"}


async def test_right_after_a_crash_the_counts_are_those_of_the_store(client: Client) -> None:
    await client.enqueue_many(3, queue="a")
    await client.in_flight(queue="b")
    await client.make("dead", queue="c")
    await client.site.crash()
    metrics = Metrics((await client.get("/metrics")).body.decode())
    assert jobs_in(metrics) == {
        ("zq_jobs", "a", "ready"): 3,
        ("zq_jobs", "b", "ready"): 1,  # its worker died with the server
        ("zq_jobs", "c", "dead"): 1,
    }
    assert metrics["zq_enqueued_total"] == 0


async def test_what_happens_to_jobs_is_counted(client: Client, scrape: Scraper) -> None:
    await client.enqueue_many(4)
    await client.enqueue(unique_key="k")
    assert (await client.post("/jobs", new_job(unique_key="k"))).status == 200
    stream = await client.take(prefetch=5)
    done, tried, killed, *_ = [job["id"] for job in await stream.jobs(5)]
    await client.succeed(done)
    await client.fail(tried)
    await client.fail(killed, kill=True)
    assert (await client.post("/jobs/success", {"ids": [done]})).status == 422
    await client.post(f"/jobs/{done}/failure", {"message": "late"})
    await stream.close()
    metrics = await scrape.until(lambda m: m["zq_returns_total"] > 0)
    assert metrics["zq_enqueued_total"] == 5
    assert metrics["zq_duplicates_total"] == 1
    assert metrics["zq_deliveries_total"] == 5
    assert metrics["zq_returns_total"] == 2
    assert metrics["zq_stalls_total"] == 1
    assert metrics["zq_settlements_total", "completed"] == 1
    assert metrics["zq_settlements_total", "retried"] == 1
    assert metrics["zq_settlements_total", "dead"] == 1
    assert metrics["zq_settlements_total", "not_in_flight"] == 2
    assert metrics["zq_refusals_total", "not_in_flight"] == 1
    assert metrics["zq_take_streams"] == 0
    assert metrics["zq_accepting_enqueues"] == 1
    assert metrics["zq_build_info", zq.__version__] == 1


async def test_jobs_that_fold_are_counted(client: Client, scrape: Scraper) -> None:
    for number in range(3):
        await client.post("/jobs", batched([number]))
    metrics = await scrape()
    assert (metrics["zq_enqueued_total"], metrics["zq_folded_total"]) == (1, 2)


async def test_jobs_that_wait_for_budgets_and_their_tokens(client: Client, scrape: Scraper) -> None:
    assert (await scrape())["zq_budgets"] == 0
    await put_budget(client, "a", 5)
    await put_budget(client, "b", 9)
    await client.enqueue_many(3, budgets=[{"key": "a", "cost": 2}])
    await client.enqueue_many(2, budgets=[{"key": "a"}, {"key": "b", "cost": 4}])
    await client.enqueue(ready_at=client.site.now + 60_000, budgets=[{"key": "b"}])
    await (await client.take(prefetch=2)).jobs(2)
    metrics = await scrape()
    assert metrics["zq_budgets"] == 2
    waiting = {key: n for key, n in metrics.values.items() if key[0] == "zq_budget_waiting_jobs"}
    assert waiting == {("zq_budget_waiting_jobs", "a"): 3, ("zq_budget_waiting_jobs", "b"): 2}
    assert metrics["zq_budget_available_tokens", "a"] == 1
    assert metrics["zq_budget_available_tokens", "b"] == 9


async def test_budgets_beyond_a_number_share_a_label(client: Client, scrape: Scraper) -> None:
    await put_budget(client, "old", 1)
    await scrape()
    policy = {"allocation": 1, "strategy": IN_FLIGHT}
    names = [f"b{number}" for number in range(MOST_BUDGETS + 20)]
    jobs = [new_job(budgets=[{"key": name, "create_with": policy}]) for name in names]
    assert (await client.post("/jobs/bulk", {"jobs": jobs})).status == 201
    metrics = await scrape()
    labels = metrics.labels("zq_budget_waiting_jobs", "budget")
    assert {"old", REST} < labels
    assert len(labels) == MOST_BUDGETS + 1
    assert metrics["zq_budgets"] == len(names) + 1
    assert metrics["zq_budget_waiting_jobs", REST] == 21
    assert metrics.labels("zq_budget_available_tokens", "budget") == labels - {REST}
    assert (await client.delete("/budgets/old")).status == 204
    after = (await scrape()).labels("zq_budget_waiting_jobs", "budget")
    assert labels - after == {"old"}
    assert len(after) == len(labels)


async def test_no_budget_can_have_the_label_of_the_rest(client: Client) -> None:
    policy = {"allocation": 1, "strategy": IN_FLIGHT}
    assert (await client.post("/budgets/*", policy)).status == 400


async def test_the_age_of_the_oldest_ready_job(client: Client, scrape: Scraper) -> None:
    def age(metrics: Metrics, queue: str) -> float | None:
        return metrics.values.get(("zq_oldest_ready_age_seconds", queue))

    stream = await client.take(queue="a")
    await client.enqueue(queue="a", priority=9)
    retried = await stream.job()
    assert age(await scrape(), "a") is None  # in flight, not ready
    await client.enqueue(queue="a", priority=9)
    await client.enqueue(queue="a", priority=5)
    await client.enqueue(queue="b", ready_at=client.site.now + 2_000)
    client.site.clock.advance(3_000)
    await scrape.until(lambda m: age(m, "b") == 1.0)  # ready for a second, though it is older
    await client.fail(retried["id"], retry_at=client.site.now)
    await client.enqueue(queue="a", priority=0)
    # The head of its priority is ready since now only; the one behind it has waited.
    assert age(await scrape(), "a") == 3.0


async def test_queues_beyond_a_number_share_a_label(client: Client, scrape: Scraper) -> None:
    await client.enqueue_many(5, queue="large")
    await scrape()
    names = [f"q{number}" for number in range(MOST_QUEUES + 50)]
    jobs = [new_job(queue=name) for name in names for _ in range(10)]
    assert (await client.post("/jobs/bulk", {"jobs": jobs})).status == 201
    metrics = await scrape()
    labels = metrics.labels("zq_jobs", "queue")
    assert len(labels) == MOST_QUEUES + 1
    assert metrics["zq_jobs", REST, "ready"] == 51 * 10
    assert sum(jobs_in(metrics).values()) == len(jobs) + 5
    assert metrics.labels("zq_oldest_ready_age_seconds", "queue") == labels - {REST}
    # A queue keeps its label while others grow past it, and gives it away when it is empty.
    assert metrics["zq_jobs", "large", "ready"] == 5
    assert (await scrape()).labels("zq_jobs", "queue") == labels
    await client.delete("/jobs", queue="large")
    after = (await scrape()).labels("zq_jobs", "queue")
    assert labels - after == {"large"}
    assert len(after - labels) == 1


async def test_no_queue_can_have_the_label_of_the_rest(client: Client) -> None:
    assert (await client.post("/jobs", new_job(queue=REST))).status == 400


async def test_ticks_are_counted_with_rows_and_times(client: Client, scrape: Scraper) -> None:
    before = await scrape()
    await client.enqueue_many(40)
    await client.enqueue()
    metrics = await scrape()
    assert metrics["zq_ticks_total"] - before["zq_ticks_total"] == 2
    assert metrics["zq_tick_rows_bucket", "10.0"] - before["zq_tick_rows_bucket", "10.0"] == 1
    assert metrics["zq_tick_rows_bucket", "100.0"] - before["zq_tick_rows_bucket", "100.0"] == 2
    assert metrics["zq_tick_rows_sum"] - before["zq_tick_rows_sum"] >= 41
    assert metrics["zq_tick_seconds_count"] == metrics["zq_ticks_total"]
    assert metrics["zq_fsync_seconds_count"] - before["zq_fsync_seconds_count"] == 2
    assert metrics["zq_fsync_seconds_sum"] > before["zq_fsync_seconds_sum"]


@pytest.mark.settings(default_commit_mode="buffered")
async def test_a_commit_that_waits_for_no_disk_is_no_fsync(client: Client, scrape: Scraper) -> None:
    await client.enqueue()
    metrics = await scrape()
    assert (metrics["zq_ticks_total"], metrics["zq_fsync_seconds_count"]) == (1, 0)


@only_sqlite
async def test_sizes_are_those_of_the_files(client: Client, scrape: Scraper) -> None:
    await client.enqueue_many(100, payload="x" * 1000)
    log, database = (client.site.root / name for name in ("zq.db-wal", "zq.db"))
    # A checkpoint may change the files after a scrape.
    metrics = await scrape.until(
        lambda m: (
            (m["zq_wal_bytes"], m["zq_database_bytes"])
            == (log.stat().st_size, database.stat().st_size)
        )
    )
    assert metrics["zq_wal_bytes"] + metrics["zq_database_bytes"] > 100_000
    assert metrics["zq_disk_free_bytes"] > 0


async def test_a_busy_event_loop_is_seen(scrape: Scraper) -> None:
    before = (await scrape())["zq_loop_lag_seconds_sum"]
    time.sleep(0.8)  # noqa: ASYNC251  # the server's loop is this one
    # It is looked at twice a second, so at least 0.3 seconds late.
    await scrape.until(lambda m: m["zq_loop_lag_seconds_sum"] > before + 0.2)


@pytest.mark.parametrize(
    ("accept", "content_type"),
    [
        ("", "text/plain; version=0.0.4; charset=utf-8"),
        ("*/*", "text/plain; version=0.0.4; charset=utf-8"),
        ("application/json", "text/plain; version=0.0.4; charset=utf-8"),
        ("text/plain; version=soon", "text/plain; version=0.0.4; charset=utf-8"),
        ("application/openmetrics-text; version=1.0.0", "application/openmetrics-text"),
        # What a Prometheus server sends.
        (
            "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,"
            "text/plain;version=0.0.4;q=0.3,*/*;q=0.1",
            "application/openmetrics-text",
        ),
    ],
)
async def test_the_format_is_the_one_asked_for(
    client: Client, accept: str, content_type: str
) -> None:
    await client.enqueue(queue='a"b\nc')
    reply = await client.send("GET", "/metrics", headers={"accept": accept})
    assert reply.status == 200
    assert reply.media_type.startswith(content_type)
    text = reply.body.decode()
    if "openmetrics" in content_type:
        parsed = text_string_to_metric_families(text)  # type: ignore[no-untyped-call]
        families = {family.name: family for family in parsed}
        assert text.endswith("# EOF\n")
        assert families["zq_jobs"].samples[0].labels["queue"] == 'a"b\nc'
    else:
        assert Metrics(text)["zq_jobs", 'a"b\nc', "ready"] == 1


async def test_a_delivery_is_on_the_disk_before_its_worker_has_its_token(
    client: Client, scrape: Scraper
) -> None:
    await client.enqueue()
    before = await scrape()
    stream = await client.take()
    await stream.job()
    assert (await scrape())["zq_fsync_seconds_count"] == before["zq_fsync_seconds_count"] + 1
