"""The examples of the documents with only a shell and curl, as a newcomer runs them."""

import asyncio
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from documents import ID, SERVER, commands
from rooms import needs

from .server import ServerProcess, running

ENQUEUE, TAKE, SUCCEED, FAIL, COUNT = commands("first job")
PAGE, EXPORT = commands("history")
SCAN, CLAIM, EXTEND, RELEASE, WORKERS, DRAIN = commands("leases")
NUMBERED, IN_BODY = commands("numbered")
STEPS, TAKE_STEPS, LIST_GROUPS, CHARGE = commands("groups")
ADD, TAKE_SUMS, RETURN, RESULT, WAIT, CALL, KEEP, DIGEST, OWNER, CANCEL = commands("results")
SET, PAUSE, SHOW, ADD_TARGET, DROP_TARGET, RETRY, REDRIVE, SWEEPS = commands("queue settings")
CHECK_PAYLOADS, SHOW_CHECK, KEEP_COMPLETED, REPLAY_ALL = commands("schemas and replays")
PUT_CRONS, SHOW_CRONS, PAUSE_CRON, DELETE_CRONS = commands("cron")
PUT_TOPIC, APPEND, DIFF, DELETE_TAGGED, TOPICS, ROUTE, WATCH, FOLLOW = commands("topics")
PUT_QUEUE, FILL, CLAIM_RECORDS, ACK_RECORD, NACK_RECORD = commands("queue-topics")
SEND, RECEIVE, NACK, OVERRIDE, LIST, REAP = commands("queue-ti")
(MOVE,) = commands("queue-ti-moving")
(NUMBERED_RECORDS,) = commands("topics-numbered")
(MOVE_TOPICS,) = commands("topics-moving")
PUT_SCHEMA, MISMATCH = commands("queue-ti-schemas")
ARCHIVE, ARCHIVED, REPLAY = commands("queue-ti-replay")
REGISTER, FOR_GROUP, GROUPS = commands("queue-ti-groups")
LISTEN, REPORT_ON, TAKE_REPORTS, PROGRESS, STATS = commands("events")


class Shell:
    """Runs commands of the documents against one server."""

    def __init__(self, server: ServerProcess) -> None:
        self._url = f"http://127.0.0.1:{server.port}"
        self._environment = os.environ | {"NO_PROXY": "*"}

    def run(self, command: str, id: str = ID) -> str:
        """What the command prints."""
        done = subprocess.run(
            ["sh", "-c", self._filled_in(command, id)],
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.returncode == 0
        assert re.fullmatch(r"(server: \S+\n)?", done.stderr)
        return done.stdout

    def document(self, command: str, id: str = ID) -> Any:
        return json.loads(self.run(command, id))

    @contextmanager
    def worker(self, take: str = TAKE) -> Iterator[subprocess.Popen[str]]:
        """A stream for as long as the context lasts."""
        command = f"exec {self._filled_in(take, ID)}"
        with subprocess.Popen(
            ["sh", "-c", command], env=self._environment, stdout=subprocess.PIPE, text=True
        ) as worker:
            try:
                yield worker
            finally:
                worker.kill()

    def _filled_in(self, command: str, id: str) -> str:
        return command.replace(SERVER, self._url).replace(ID, id)


def next_job(worker: subprocess.Popen[str]) -> Any:
    """The next job that it prints; an empty line is a heartbeat."""
    assert worker.stdout is not None
    return next(json.loads(line) for line in worker.stdout if line != "\n")


async def test_the_first_job_of_the_documents(tmp_path: Path) -> None:
    async with running(tmp_path) as server:
        shell = Shell(server)

        stored = shell.document(ENQUEUE)
        assert (stored["status"], stored["queue"]) == ("ready", "mail")
        with shell.worker() as worker:
            taken = next_job(worker)
            assert taken["id"] == stored["id"]
            assert taken["payload"] == {"to": "ann@example.org"}
            assert shell.run(SUCCEED, stored["id"]).startswith("HTTP/1.1 204")
            assert shell.document(COUNT) == {"count": 0}

            # Waiting as it is, the worker gets the next one without asking.
            again = shell.document(ENQUEUE)
            assert next_job(worker)["id"] == again["id"]
            failed = shell.document(FAIL, again["id"])
            assert (failed["status"], failed["attempts"]) == ("scheduled", 1)
        assert shell.document(COUNT) == {"count": 1}


async def test_a_killed_workers_jobs_go_to_another(tmp_path: Path) -> None:
    async with running(tmp_path) as server:
        shell = Shell(server)
        jobs = [shell.document(ENQUEUE)["id"] for _ in range(2)]

        with shell.worker() as doomed:
            assert [next_job(doomed)["id"] for _ in jobs] == jobs
            with shell.worker() as other:
                doomed.kill()
                taken = [next_job(other) for _ in jobs]
        assert [(job["id"], job["attempts"]) for job in taken] == [(id, 0) for id in jobs]


async def test_what_is_left_to_do_survives_kill_9(tmp_path: Path) -> None:
    async with running(tmp_path) as server:
        shell = Shell(server)
        jobs = [shell.document(ENQUEUE)["id"] for _ in range(2)]
        with shell.worker() as worker:
            assert [next_job(worker)["id"] for _ in jobs] == jobs
            shell.run(SUCCEED, jobs[0])
            await server.kill()

    async with running(tmp_path) as server:
        shell = Shell(server)
        assert shell.document(COUNT) == {"count": 1}
        with shell.worker() as worker:
            assert next_job(worker)["id"] == jobs[1]


async def test_the_results_of_the_documents(tmp_path: Path) -> None:
    async with running(tmp_path) as server:
        shell = Shell(server)

        added = shell.document(ADD)["id"]
        with shell.worker(TAKE_SUMS) as worker:
            taken = next_job(worker)
            assert (taken["id"], taken["lease"]) == (added, 1)
            assert shell.run(RETURN, added).startswith("HTTP/1.1 204")
            for command in (RESULT, WAIT):
                assert shell.document(command, added) == {"status": "completed", "result": 3}
            kept = shell.document(KEEP, added)
            assert kept["purge_at"] > kept["completed_at"] + 60_000

            called = asyncio.create_task(asyncio.to_thread(shell.document, CALL))
            summed = await asyncio.to_thread(next_job, worker)
            shell.run(RETURN, summed["id"])
            answer = await called
            assert (answer["status"], answer["result"]) == ("completed", 3)
            assert answer["job"]["id"] == summed["id"]


async def test_the_history_of_the_documents(tmp_path: Path) -> None:
    async with running(tmp_path / "data", "--history", "7d") as server:
        shell = Shell(server)
        stored = shell.document(ENQUEUE)
        with shell.worker() as worker:
            next_job(worker)
            shell.run(SUCCEED, stored["id"])

        (record,) = shell.document(PAGE)["records"]
        assert (record["job_id"], record["outcome"]) == (stored["id"], "completed")

        with pytest.MonkeyPatch.context() as environment:
            environment.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
            environment.setenv("ZQ_URL", f"http://127.0.0.1:{server.port}")
            usb = tmp_path / "usb"
            exporting = Shell(server).run(EXPORT.replace("/media/usb", str(usb)))
        assert exporting == "1 new record in 1 segment\n"
        assert json.loads((usb / "history" / "manifest.json").read_text())["segments"]


async def test_the_keys_of_the_documents(tmp_path: Path) -> None:
    async with running(tmp_path) as server:
        shell = Shell(server)

        digest = shell.document(DIGEST)
        assert digest["duplicate"] is False
        assert shell.document(DIGEST)["replaced"] is True
        assert shell.document(OWNER)["id"] == digest["id"]
        assert shell.document(CANCEL)["status"] == "cancelled"
        assert shell.document(OWNER) == {"error": "job not found"}


async def test_the_events_of_the_documents(tmp_path: Path) -> None:
    async with running(tmp_path) as server:
        shell = Shell(server)

        with shell.worker(LISTEN) as listener:
            assert listener.stdout is not None
            assert listener.stdout.readline() == ": heartbeat\n"
            stored = shell.document(REPORT_ON)
            with shell.worker(TAKE_REPORTS) as worker:
                taken = next_job(worker)
                assert (taken["id"], taken["meta"]) == (stored["id"], {"user": "ann"})
                assert shell.run(PROGRESS, taken["id"]).startswith("HTTP/1.1 204")
                stats = shell.document(STATS)
            told = (line for line in listener.stdout if line.startswith("data: "))
            events = [json.loads(next(told).removeprefix("data: ")) for _ in range(3)]

        assert [event["type"] for event in events] == ["enqueued", "started", "progress"]
        assert {event["id"] for event in events} == {stored["id"]}
        assert events[2]["data"] == {"pages": 12}
        assert (stats["counts"]["in_flight"], stats["deliveries"]["total"]) == (1, 1)


async def test_the_leases_of_the_documents(tmp_path: Path) -> None:
    async with running(tmp_path) as server:
        shell = Shell(server)

        scan = shell.document(SCAN)["id"]
        (claimed,) = shell.document(CLAIM)["jobs"]
        assert (claimed["id"], claimed["lease"]) == (scan, 1)
        until = shell.document(EXTEND, scan)["lease_until"]
        assert until > claimed["lease_until"]
        assert shell.run(RELEASE, scan).startswith("HTTP/1.1 204")
        assert "409" in shell.run(RELEASE, scan)

        take = TAKE_SUMS.replace("curl", "curl -H 'worker-id: scanner-2'")
        with shell.worker(take) as worker:
            added = shell.document(ADD)["id"]
            assert next_job(worker)["id"] == added
            (listed,) = shell.document(WORKERS)["workers"]
            assert (listed["id"], listed["held"]) == ("scanner-2", [added])
            (drained,) = shell.document(DRAIN)["workers"]
            assert drained["draining"] is True


async def test_the_groups_of_the_documents(tmp_path: Path) -> None:
    async with running(tmp_path) as server:
        shell = Shell(server)

        stored = [json.loads(line) for line in shell.run(STEPS).splitlines()]
        assert [job["type"] for job in stored] == ["open", "charge", "close"]
        with shell.worker(TAKE_STEPS) as worker:
            for job in stored:
                taken = next_job(worker)
                assert (taken["id"], taken["group"]) == (job["id"], "acct-17")
                (group,) = shell.document(LIST_GROUPS)["groups"]
                assert (group["group"], group["open"]["id"]) == ("acct-17", job["id"])
                assert shell.run(SUCCEED, job["id"]).startswith("HTTP/1.1 204")

        charge = shell.document(CHARGE)
        assert charge["duplicate"] is False
        again = shell.document(CHARGE)
        assert (again["id"], again["duplicate"]) == (charge["id"], True)


async def test_the_numbered_jobs_of_the_documents(tmp_path: Path) -> None:
    async with running(tmp_path) as server:
        shell = Shell(server)

        first = shell.document(NUMBERED)["jobs"]
        again = shell.document(NUMBERED)["jobs"]
        assert [job["duplicate"] for job in first] == [False, False]
        assert [(job["id"], job["duplicate"]) for job in again] == [
            (job["id"], True) for job in first
        ]
        (next_one,) = shell.document(IN_BODY)["jobs"]
        assert next_one["duplicate"] is False


@needs("doors.topics")
async def test_the_numbered_records_of_the_documents(tmp_path: Path) -> None:
    async with running(tmp_path) as server:
        shell = Shell(server)

        first = shell.document(NUMBERED_RECORDS)
        again = shell.document(NUMBERED_RECORDS)
        assert (first["duplicates"], first["seqs"]) == (0, [1, 2])
        assert (again["duplicates"], again["seqs"], again["deduped"]) == (2, [1, 2], True)


async def test_the_messages_of_the_documents(tmp_path: Path) -> None:
    async with running(tmp_path) as server:
        shell = Shell(server)

        id = shell.document(SEND)["id"]
        (message,) = shell.document(RECEIVE)["messages"]
        assert (message["id"], message["payload"]) == (id, "eyJhbW91bnQiOjk5fQ==")
        assert shell.run(NACK, id) == ""
        assert shell.document(OVERRIDE)["max_retries"] == 5
        assert shell.document(LIST)["items"][0]["last_error"] == "no stock"
        assert shell.document(REAP) == {"deleted": 0}
        assert shell.document(ARCHIVE)["replayable"] is True
        assert shell.document(ARCHIVED)["items"] == []
        assert shell.document(REPLAY)["enqueued"] == 0
        assert shell.document(PUT_SCHEMA)["version"] == 1
        assert "must be of type int" in shell.document(MISMATCH)["error"]
        assert shell.run(REGISTER) == ""
        assert shell.document(SEND)["id"]
        (taken,) = shell.document(FOR_GROUP)["messages"]
        assert taken["topic"] == "orders"
        assert shell.document(GROUPS) == {"items": ["billing"]}
        # To itself: what it says of addresses is the same.
        move = MOVE.replace("python", sys.executable).replace("http://127.0.0.1:8080", SERVER)
        assert "overrides copied" in shell.run(move)


@needs("doors.topics")
async def test_the_topics_of_the_documents(tmp_path: Path) -> None:
    async with running(tmp_path) as server:
        shell = Shell(server)

        assert shell.document(PUT_TOPIC)["config"]["durability"] == "fsync"
        assert shell.document(APPEND)["seqs"] == [1, 2]
        assert shell.document(APPEND)["deduped"] is True
        found = shell.document(DIFF)
        assert [record["data"] for record in found["records"]] == [{"clip": 9001}, {"clip": 9002}]
        assert shell.document(DELETE_TAGGED)["deleted"] == 1
        assert [each["count"] for each in shell.document(TOPICS)["topics"]] == [1]
        assert shell.document(ROUTE)["created"] is True
        session = shell.document(WATCH)
        with shell.worker(FOLLOW.replace("WID", session["wid"])) as reader:
            assert reader.stdout is not None
            lines = iter(reader.stdout)
            assert "event: record\n" in lines
            assert '"data":{"clip": 9002}' in next(lines)


@needs("doors.topics")
async def test_the_queue_topics_of_the_documents(tmp_path: Path) -> None:
    async with running(tmp_path) as server:
        shell = Shell(server)

        assert shell.document(PUT_QUEUE)["config"]["type"] == "queue"
        assert shell.document(FILL)["seqs"] == [1, 2]
        assert [each["$seq"] for each in shell.document(CLAIM_RECORDS)["claimed"]] == [1, 2]
        assert shell.document(ACK_RECORD)["acked"] == 1
        given_back = shell.document(NACK_RECORD)
        assert (given_back["nacked"], given_back["ready"]) == (1, 0), "its delay runs"
        # To itself: what it says of addresses is the same.
        move = MOVE_TOPICS.replace("python", sys.executable)
        assert "topics copied" in shell.run(move.replace("http://127.0.0.1:4000", SERVER))


async def test_the_settings_of_the_documents(tmp_path: Path) -> None:
    async with running(tmp_path) as server:
        shell = Shell(server)

        assert shell.document(SET)["rate"] == 50
        job = shell.document(ENQUEUE)["id"]
        with shell.worker() as worker:
            assert next_job(worker)["id"] == job
            moved = shell.document(FAIL, job)
            assert (moved["queue"], moved["origin"]) == ("mail-dead", "mail")
            assert (moved["status"], moved["reason"]) == ("ready", "exhausted")
        paused = shell.document(PAUSE)
        assert paused == shell.document(SHOW)
        assert (paused["paused"], "rate" in paused, paused["concurrency"]) == (True, False, 10)
        assert shell.document(ADD_TARGET) == {"added": 0}
        assert shell.document(DROP_TARGET) == {"deleted": 0}

        assert shell.document(REDRIVE) == {"requeued": 1}
        assert shell.document(REDRIVE) == {"requeued": 0}
        checked = shell.document(CHECK_PAYLOADS)
        assert checked["version"] == 1 and shell.document(SHOW_CHECK) == checked
        assert shell.document(KEEP_COMPLETED)["retention"] == {"completed_ms": 604_800_000}
        assert shell.document(REPLAY_ALL) == {"replayed": 0}
        assert shell.document(SWEEPS) == {"sweeps": []}
        assert "only a dead job" in shell.document(RETRY, job)["error"]


async def test_the_schedules_of_the_documents(tmp_path: Path) -> None:
    async with running(tmp_path) as server:
        shell = Shell(server)
        put = shell.document(PUT_CRONS)
        assert [entry["name"] for entry in put["entries"]] == ["nightly", "beat"]
        shown = shell.document(SHOW_CRONS)
        assert [entry["name"] for entry in shown["entries"]] == ["beat", "nightly"]
        assert shell.document(PAUSE_CRON)["paused"] is True
        assert shell.run(DELETE_CRONS) == ""
        assert "not found" in shell.document(SHOW_CRONS)["error"]
