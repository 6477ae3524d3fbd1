"""A first job with nothing but a shell and curl, as a newcomer does it."""

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from .server import ServerProcess, running

PATIENCE_S = "20"


class Shell:
    """curl commands against one server."""

    def __init__(self, server: ServerProcess) -> None:
        self._url = f"http://127.0.0.1:{server.port}"

    def _command(self, path: str, *options: str) -> list[str]:
        return [
            "curl",
            "-sS",
            "--noproxy",
            "*",
            "--max-time",
            PATIENCE_S,
            *options,
            self._url + path,
        ]

    def curl(self, path: str, *options: str) -> Any:
        """The document that a request is answered with; None if it has no body."""
        answer = subprocess.run(
            self._command(path, "--fail-with-body", *options), capture_output=True, text=True
        )
        assert (answer.returncode, answer.stderr) == (0, ""), answer.stdout
        return json.loads(answer.stdout) if answer.stdout else None

    def post(self, path: str, document: object) -> Any:
        body = json.dumps(document)
        return self.curl(path, "-H", "Content-Type: application/json", "-d", body)

    @contextmanager
    def take(self, query: str) -> Iterator[subprocess.Popen[str]]:
        """A worker: `curl -N` that prints jobs as they come, until it is killed."""
        command = self._command(f"/jobs/take?{query}", "-N")
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as worker:
            try:
                yield worker
            finally:
                worker.kill()


def next_job(worker: subprocess.Popen[str]) -> Any:
    """The next job that it prints; an empty line is a heartbeat."""
    assert worker.stdout is not None
    return next(json.loads(line) for line in worker.stdout if line != "\n")


async def test_a_first_job_from_curl_to_curl(tmp_path: Path) -> None:
    mail = {"queue": "mail", "type": "welcome", "payload": {"to": "ada@example.org"}}
    async with running(tmp_path) as server:
        shell = Shell(server)

        stored = shell.post("/jobs", mail)
        assert (stored["status"], stored["queue"]) == ("ready", "mail")
        more = shell.post("/jobs/bulk", {"jobs": [mail, mail]})["jobs"]

        with shell.take("queue=mail&prefetch=3") as worker:
            taken = [next_job(worker) for _ in range(3)]
            assert [job["id"] for job in taken] == [job["id"] for job in [stored, *more]]
            assert taken[0]["payload"] == mail["payload"]
            assert shell.curl("/jobs/count?status=in_flight") == {"count": 3}
            assert shell.post("/jobs/success", {"ids": [job["id"] for job in taken]}) is None
            assert shell.curl("/jobs/count") == {"count": 0}


async def test_a_killed_curls_jobs_go_to_the_next(tmp_path: Path) -> None:
    mail = {"queue": "mail", "type": "welcome", "payload": None}
    async with running(tmp_path) as server:
        shell = Shell(server)
        jobs = [shell.post("/jobs", mail)["id"] for _ in range(2)]

        with shell.take("prefetch=2") as doomed:
            assert [next_job(doomed)["id"] for _ in jobs] == jobs
            with shell.take("prefetch=2") as other:
                doomed.kill()
                taken = [next_job(other) for _ in jobs]
        assert [(job["id"], job["attempts"]) for job in taken] == [(id, 0) for id in jobs]


async def test_jobs_and_what_is_left_of_them_survive_kill_9(tmp_path: Path) -> None:
    mail = {"queue": "mail", "type": "welcome", "payload": None}
    async with running(tmp_path) as server:
        shell = Shell(server)
        first, second = (shell.post("/jobs", mail)["id"] for _ in range(2))
        with shell.take("prefetch=2") as worker:
            assert [next_job(worker)["id"] for _ in range(2)] == [first, second]
            shell.curl(f"/jobs/{first}/success", "-X", "POST")
            await server.kill()

    async with running(tmp_path) as server:
        shell = Shell(server)
        assert shell.curl("/jobs/count") == {"count": 1}
        with shell.take("prefetch=2") as worker:
            assert next_job(worker)["id"] == second
