"""Rows become jobs once, however often they are sent, and bad rows are named or set aside."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from pyspark.sql import Row
from tls.authority import Authority

from zq.model.clock import now_ms
from zq.spark.errors import SourceError
from zq.spark.source import forgetting, writing
from zq.spark.source.listing import SCHEMA, JobsRead
from zq.spark.source.options import parse
from zq.spark.source.writing import Written, _Task

from .served import Served, served


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("lab") / "data", max_payload=1_000) as server:
        yield server


def store(url: str, rows: list[Row], name: str, batch: int = 0, **given: str) -> Written:
    """One task's part of a write, or of a micro-batch."""
    return _Task(parse({"url": url, **given}), name, batch).store(iter(rows))


def rows(queue: str, count: int) -> list[Row]:
    return [Row(queue=queue, type="t", payload=f'{{"n":{n}}}') for n in range(count)]


def jobs(server: Served, queue: str) -> list[Any]:
    found: list[Any] = server.call("GET", f"/jobs?queue={queue}&limit=2000")["jobs"]
    return found


def numbers(server: Served, queue: str) -> list[int]:
    return [job["payload"]["n"] for job in jobs(server, queue)]


@pytest.mark.parametrize("batch_size", ["10", "1000"])
def test_rows_are_stored_in_the_order_of_a_column(lab: Served, batch_size: str) -> None:
    queue = f"order{batch_size}"
    some = [Row(queue=queue, type="t", payload=Row(n=n)) for n in (3, 200, 10, None, 1, -5)]
    done = store(lab.url, some, queue, batchSize=batch_size, orderBy="payload.n")
    assert done == Written(6, 0)
    assert numbers(lab, queue) == [-5, 1, 3, 10, 200, None]


def test_a_task_that_runs_again_stores_nothing_twice(lab: Served) -> None:
    """As after a failure, or beside a copy of itself (speculation): also with other requests."""
    for size in ("10", "7", "1000"):
        assert store(lab.url, rows("again", 25), "w-1", batchSize=size) == Written(25, 0)
    assert sorted(numbers(lab, "again")) == list(range(25))


def test_a_task_that_runs_again_with_its_rows_in_another_order_loses_and_doubles_none(
    lab: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark computes rows again after a lost executor, in whatever order a shuffle brings them."""
    six = rows("order-again", 6)
    task = _Task(parse({"url": lab.url, "batchSize": "2"}), "o-0")
    send, sent = task._send, []

    def lost(number: int, jobs: Any, after: str | None = None) -> Any:
        sent.append(number)
        if number == 5:
            raise RuntimeError("executor lost")
        return send(number, jobs, after)

    monkeypatch.setattr(task, "_send", lost)
    with pytest.raises(RuntimeError):
        task.store(iter(six))
    assert len(jobs(lab, "order-again")) == 4
    assert store(lab.url, six[3:] + six[2::-1], "o-0", batchSize="4") == Written(6, 0)
    assert sorted(numbers(lab, "order-again")) == list(range(6))


def test_equal_rows_of_a_task_are_as_many_jobs_in_any_order(lab: Served) -> None:
    one, other = rows("equal", 2)
    store(lab.url, [one, one, other], "e-0", batchSize="2")
    store(lab.url, [other, one, one], "e-0", batchSize="1")
    assert sorted(numbers(lab, "equal")) == [0, 0, 1]


def test_rows_are_known_even_when_their_jobs_are_done_and_gone(lab: Served) -> None:
    store(lab.url, rows("gone", 3), "gone-0")
    lab.call("DELETE", "/jobs?queue=gone")
    store(lab.url, rows("gone", 3), "gone-0")
    assert jobs(lab, "gone") == []


def test_other_rows_than_the_first_time_are_refused_unless_nothing_is_stored(lab: Served) -> None:
    with pytest.raises(SourceError, match="queue is missing"):
        store(lab.url, [Row(queue=None, type="t", payload="1")], "d-0")
    store(lab.url, rows("differ", 3), "d-0")
    with pytest.raises(SourceError, match="3 jobs of this partition are stored, and now it has"):
        store(lab.url, rows("differ", 4), "d-0")
    assert len(jobs(lab, "differ")) == 3


def test_each_micro_batch_takes_over_and_an_earlier_one_stores_nothing(lab: Served) -> None:
    """All batches of a query are one producer a partition, so producers do not grow with them."""
    for batch in (7, 8, 8, 12):
        store(lab.url, rows("stream", 2), "q-0", batch)
    with pytest.raises(SourceError, match="micro-batch 12 was written already, and this is 8"):
        store(lab.url, rows("stream", 2), "q-0", 8)
    assert len(jobs(lab, "stream")) == 6
    known = lab.call("GET", "/producers?from=q-&limit=1")["producers"]
    assert [(each["name"], each["last"]) for each in known] == [("q-0", 2)]


def test_producers_of_old_writes_are_forgotten(
    lab: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = parse({"url": lab.url})
    old, young = f"{forgetting.name_for_once()}-0", "w-young-0"
    for name in (old, young):
        store(lab.url, rows("forget", 1), name)

    def names() -> set[str]:
        return {each["name"] for each in lab.call("GET", "/producers?limit=1000")["producers"]}

    forgetting.forget_old(options)
    assert {old, young} <= names()
    day = now_ms() + forgetting.DAY_MS + 1
    monkeypatch.setattr(forgetting, "now_ms", lambda: day)
    forgetting.forget_old(options)
    assert old not in names() and young in names()


def test_equal_rows_of_other_tasks_and_writes_are_other_jobs(lab: Served) -> None:
    for name in ("w-2", "w-3", "v-2"):
        store(lab.url, rows("other", 2), name)
    assert len(jobs(lab, "other")) == 6


def test_structures_become_json(lab: Served) -> None:
    row = Row(
        queue="json",
        type="t",
        payload=Row(id=7, tags=["a", None], inner=Row(x=1.5), map={"k": True}),
        retention=Row(completed_ms=5, dead_ms=None),
    )
    store(lab.url, [row], "json-0")
    (job,) = jobs(lab, "json")
    assert job["payload"] == {
        "id": 7,
        "tags": ["a", None],
        "inner": {"x": 1.5},
        "map": {"k": True},
    }
    assert job["retention"] == {"completed_ms": 5}


# Bad rows

LARGE = json.dumps("x" * 2_000)
MIXED = [
    *rows("mixed", 3),
    Row(queue=None, type="t", payload="1"),
    Row(queue="a,b", type="t", payload="1"),
    Row(queue="mixed", type="t", payload=LARGE),
    Row(queue="mixed", type="t", payload="{"),
    *rows("mixed", 2),
]


def test_bad_rows_fail_the_write_by_name(lab: Served) -> None:
    with pytest.raises(SourceError) as failure:
        store(lab.url, MIXED, "mixed-0")
    told = str(failure.value)
    assert "row 3" in told and "queue is missing" in told
    assert "row 4" in told and "must not contain ','" in told
    assert "row 5" in told and "2002 bytes" in told
    assert "row 6" in told and "not JSON text" in told
    assert "set badRows=DIR" in told


def test_the_first_few_are_enough(lab: Served) -> None:
    bad = [Row(queue="q", type="t", payload="{")] * 100
    with pytest.raises(SourceError) as failure:
        store(lab.url, bad, "w-0")
    assert str(failure.value).count("row ") - str(failure.value).count("any row ") == 5


def test_bad_rows_go_to_a_table_beside(lab: Served, tmp_path: Path) -> None:
    aside = tmp_path / "deep" / "bad"
    for _ in range(2):
        done = store(lab.url, MIXED, "w-9", badRows=str(aside))
        assert done == Written(5, 4)
    assert len(jobs(lab, "mixed")) >= 5
    (file,) = aside.iterdir()
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    by_reason = {line["error"]: json.loads(line["row"]) for line in lines}
    assert by_reason["queue is missing"] == {"queue": None, "type": "t", "payload": "1"}
    assert len(lines) == 4


def test_a_row_that_was_set_aside_stays_there_whatever_the_server_accepts_later(
    tmp_path: Path,
) -> None:
    """Otherwise the rows after it would have other numbers when the task runs again."""
    some = [*rows("later", 3), Row(queue="later", type="t", payload=LARGE), *rows("later", 2)]
    aside = str(tmp_path / "bad")
    with served(tmp_path / "data", max_payload=1_000) as server:
        assert store(server.url, some, "l-0", batchSize="2", badRows=aside) == Written(5, 1)
    with served(tmp_path / "data", max_payload=10_000) as server:
        assert store(server.url, some, "l-0", batchSize="3", badRows=aside) == Written(5, 1)
        assert sorted(numbers(server, "later")) == [0, 0, 1, 1, 2]


# A server that is busy, and a line that breaks


class Front:
    """Stands before a server and does to each request what the plan says next.

    `busy` and `limited` answer 503 and 429 without passing it on; `drop` passes it on and hangs up
    before the answer; after the plan everything passes.
    """

    def __init__(self, behind: str, plan: list[str]) -> None:
        front = self
        self.seen: list[str] = []

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                step = plan.pop(0) if plan else "pass"
                front.seen.append(step)
                if step in ("busy", "limited"):
                    self.send_response(503 if step == "busy" else 429)
                    self.send_header("Content-Length", "0")
                    self.send_header("Retry-After", "0")
                    self.end_headers()
                    return
                headers = {"Content-Type": "application/json"}
                try:
                    answer = urlopen(Request(behind + self.path, body, headers))
                except HTTPError as error:
                    answer = error
                with answer:
                    text = answer.read()
                if step == "drop":
                    self.close_connection = True
                    return
                self.send_response(answer.status)
                for name in ("Content-Type", "Zq-Error"):
                    if name in answer.headers:
                        self.send_header(name, answer.headers[name])
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, format: str, *args: object) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    def __enter__(self) -> "Front":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def test_a_busy_server_is_asked_again_and_a_lost_answer_does_no_harm(lab: Served) -> None:
    # The first request asks for the number.
    with Front(lab.url, ["pass", "busy", "drop", "limited", "pass", "drop"]) as front:
        store(front.url, rows("busy", 30), "busy-0", batchSize="10")
    assert front.seen == ["pass", "busy", "drop", "limited", "pass", "drop", "pass", "pass"]
    assert sorted(numbers(lab, "busy")) == list(range(30))


class Sleeping:
    """The time of a writer: it passes while the writer sleeps."""

    def __init__(self) -> None:
        self._now = 0.0

    def monotonic(self) -> float:
        return self._now

    def sleep(self, seconds: float) -> None:
        self._now += seconds


def test_a_server_that_stays_busy_ends_the_write_after_a_time(
    lab: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writing, "time", Sleeping())
    with (
        Front(lab.url, ["busy"] * 1_000) as front,
        pytest.raises(SourceError, match=r"has taken no jobs for 1 s \(retryFor\): \(503\)"),
    ):
        store(front.url, rows("never", 1), "w-0", retryFor="1")
    assert len(front.seen) > 1


def test_a_write_need_not_wait_for_a_busy_server(
    lab: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writing, "time", Sleeping())
    with (
        Front(lab.url, ["busy"] * 1_000) as front,
        pytest.raises(SourceError, match=r"has taken no jobs for 0 s \(retryFor\)"),
    ):
        store(front.url, rows("never", 1), "w-0", retryFor="0")
    assert len(front.seen) == 1


def test_a_full_queue_gets_as_many_jobs_as_it_has_room_for(
    lab: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Draining(Sleeping):
        def sleep(self, seconds: float) -> None:
            super().sleep(seconds)
            lab.call("POST", "/jobs/cancel?queue=full")

    monkeypatch.setattr(writing, "time", Draining())
    lab.call("PATCH", "/queues/full/settings", {"max_depth": 3})
    assert store(lab.url, rows("full", 20), "full-0", retryFor="60") == Written(20, 0)
    (known,) = lab.call("GET", "/producers?from=full-&limit=1")["producers"]
    assert (known["name"], known["last"]) == ("full-0", 20)


def test_what_is_no_fault_of_a_row_ends_the_write(tmp_path: Path) -> None:
    from conformance.keyed import secret, write_keys

    with (
        served(tmp_path / "data", keys=write_keys(tmp_path / "keys")) as server,
        pytest.raises(
            SourceError, match=r"refuses the jobs \(403\): .* does not have the scope enqueue"
        ),
    ):
        store(server.url, rows("q", 1), "w-0", token=secret("only-read"))


def test_writes_and_reads_of_jobs_trust_the_authority_of_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority = Authority(tmp_path / "certificates")
    cert, key = authority.issue("server")
    monkeypatch.setenv("ZQ_CA", str(authority.file))
    with served(tmp_path / "data", tls_cert=cert, tls_key=key) as server:
        url = server.url.replace("127.0.0.1", "localhost")
        assert store(url, rows("q", 3), "w", retryFor="5") == Written(3, 0)
        forgetting.forget_old(parse({"url": url}))
        read = JobsRead(parse({"url": url, "table": "jobs", "partitions": "1"}), SCHEMA)
        assert len([row for part in read.partitions() for row in read.read(part)]) == 3
