"""A real server in a process of its own, with the operators' page and a seeded file."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import httpx
from conformance.streams import PATIENCE_S

from zq.model.keys import KeyScope, digest_of, make_key

HOSTILE = (
    '{"big": 9223372036854775808, "b": 1, "a": 2, "a": 3, "rtl": "\u202eabc\u202c",'
    ' "html": "</script><img src=x onerror=\\"window.hurt=1\\">", "e": 1.50E+2}'
)
"""A payload that only shows as it is if nobody parses it, and harms whoever takes it for HTML."""


class Place(NamedTuple):
    """A running server. `process` may be signalled."""

    primary: str
    admin: str
    process: "subprocess.Popen[str]"

    @property
    def ui(self) -> str:
        return f"{self.admin}/ui/"


@contextlib.contextmanager
def serving(root: Path, *flags: str, env: dict[str, str] | None = None) -> Iterator[Place]:
    """A server that runs within the context, with these variables besides its own."""
    command = [
        *(sys.executable, "-m", "zq.cli", "serve", "--root-dir", str(root), "--log-format", "json"),
        *("--port", "0", "--admin-port", "0", "--drain", "0", *flags),
    ]
    variables = os.environ | (env or {})
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=variables) as process:
        assert process.stdout is not None
        urls: dict[str, str] = {}
        for line in process.stdout:
            fields = json.loads(line)["fields"]
            if fields["message"] == "listening":
                urls[fields["api"]] = f"http://{fields['addr']}"
            if len(urls) == 2:
                break
        try:
            yield Place(urls["primary"], urls["admin"], process)
        finally:
            process.send_signal(signal.SIGCONT)
            process.terminate()
            process.stdout.read()


def until(condition: Callable[[], object]) -> None:
    """Return once this holds: what the page shows may be ahead of the server, or behind it."""
    give_up = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < give_up, "it does not come true"
        time.sleep(0.01)


def seed(url: str, headers: dict[str, str] | None = None) -> dict[str, str]:
    """Jobs in every status. Return the ids of some by their statuses, and of the hostile one."""
    ids: dict[str, str] = {}
    with httpx.Client(base_url=url, headers=headers, trust_env=False) as http:

        def call(method: str, path: str, body: Any = None) -> Any:
            reply = http.request(method, path, json=body)
            assert reply.is_success, (path, reply.text)
            return reply.json() if reply.content else None

        def new(queue: str, **fields: Any) -> str:
            job = {"queue": queue, "type": "send", "payload": {"to": "ann"}} | fields
            stored: str = call("POST", "/jobs", job)["id"]
            return stored

        def claim(queue: str, count: int) -> list[Any]:
            body = {"max": count, "lease_ms": 3_600_000, "holder": "w-1"}
            jobs: list[Any] = call("POST", f"/queues/{queue}/claim", body)["jobs"]
            return jobs

        for _ in range(3):
            new("died")
        for job in claim("died", 3):
            failure = {"message": "SMTP 421 for 'ann'", "error_type": "SmtpError", "kill": True}
            call("POST", f"/jobs/{job['id']}/failure", failure | {"lease": job["lease"]})
            ids["dead"] = job["id"]
        ids["in_flight"] = new("running")
        claim("running", 1)
        ids["completed"] = new("done", retention={"completed_ms": 86_400_000})
        for job in claim("done", 1):
            call("POST", f"/jobs/{job['id']}/success", {"lease": job["lease"]})
        ids["cancelled"] = new("gone")
        call("POST", f"/jobs/{ids['cancelled']}/cancel", {})
        ids["scheduled"] = new("later", ready_at=4_000_000_000_000)
        ids["expired"] = new("late", ttl_ms=1, retention={"dead_ms": 86_400_000})
        ids["ready"] = new("mail", fair_key="acme")
        call("PATCH", "/queues/mail/settings", {"max_depth": 500, "dead_letter": "mail-dead"})
        call("PATCH", "/queues/held/settings", {"paused": True})
        new("held")
        call(
            "PUT",
            "/crons/nightly",
            {
                "entries": [
                    {
                        "name": "report",
                        "expression": "0 3 29 2 *",
                        "job": {"queue": "later", "type": "report", "payload": 1},
                    }
                ]
            },
        )
        producer = {"name": "device-17", "epoch": "7f3a", "seq": 1}
        call("POST", "/jobs/bulk", {"producer": producer, "jobs": []})
        lane = {"name": "main", "jobs": 3, "bytes": 300, "oldest_ms": 9_000, "queues": {"mail": 3}}
        lanes = [lane, {"name": "old", "paused": True}, {"name": "far", "error": "no route"}]
        clock = {"version": "0.1.0", "now": round(time.time() * 1000), "lanes": lanes}
        call("PUT", "/devices/edge-1", {"instance": "i1", **clock})
        call("PUT", "/forward/up", {"queues": ["sent-on"], "url": "http://127.0.0.1:9"})
        call("POST", "/forward/up/pause", {})
        text = '{"queue": "mail", "type": "odd", "payload": ' + HOSTILE + "}"
        reply = http.post("/jobs", content=text, headers={"Content-Type": "application/json"})
        ids["hostile"] = reply.json()["id"]
    return ids


def key_file(path: Path) -> Path:
    """A key for each scope, and one for all. The secret of a key is its name, twice."""
    names = {scope: str(scope) for scope in KeyScope} | {"all": ",".join(KeyScope)}
    names["reader-changer"] = "read,manage"
    names["reader-sender"] = "read,enqueue"
    names["reader-rest"] = "read,take,history,reveal"
    keys = [make_key(n, digest_of((n * 2).encode()), scopes, ()) for n, scopes in names.items()]
    path.write_text("".join(f"{key.line}\n" for key in keys))
    return path
