"""A page of another site, in a real browser, against a server on plain http.

The server goes by a name that is no loopback one, so Chromium takes neither it nor the page for
trustworthy: it sends no `Sec-Fetch-Site`, and with an image no `Origin` either. The names lead to
this machine in that browser alone.
"""

import asyncio
import contextlib
import os
import signal
import subprocess
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import headless
from aiohttp import web

from .server import running

QUEUE, EVIL = "queue.example", "evil.example"

ATTACK = """<!doctype html><title>waiting</title><body><script>
const at = "http://{queue}";
const tags = [["img", "src"], ["iframe", "src"], ["script", "src"], ["video", "src"],
              ["embed", "src"], ["object", "data"]];
for (const [tag, attribute] of tags) {{
    const element = document.createElement(tag);
    element.referrerPolicy = "no-referrer";
    element[attribute] = at + "/jobs/take?prefetch=1&worker=" + tag;
    document.body.append(element);
}}
const link = document.createElement("link");
link.rel = "stylesheet";
link.href = at + "/jobs/take?prefetch=1&worker=link";
document.head.append(link);
const quiet = {{mode: "no-cors", credentials: "include", referrerPolicy: "no-referrer"}};
const text = JSON.stringify({{queue: "default", type: "evil", payload: 1}});
const tries = [
    fetch(at + "/jobs/take?prefetch=1&worker=fetch", quiet),
    fetch(at + "/jobs", {{...quiet, method: "POST", body: text}}),
    fetch(at + "/jobs", {{...quiet, method: "POST", body: new Blob([text])}}),
    fetch(at + "/reset", {{...quiet, method: "POST"}}),
    fetch(at + "/jobs", {{method: "DELETE"}}),
    fetch(at + "/jobs").then(answer => answer.text()).then(read => stolen.push(read)),
];
const stolen = [];
navigator.sendBeacon(at + "/jobs", text);
new EventSource(at + "/events");
const form = document.createElement("form");
form.action = at + "/jobs/success"; form.method = "post"; form.enctype = "text/plain";
const frame = document.createElement("iframe");
frame.name = "f"; document.body.append(frame); form.target = "f";
document.body.append(form); form.submit();
setTimeout(() => fetch("/done?stolen=" + stolen.length), 3000);
</script>"""


@contextlib.asynccontextmanager
async def evil_site(queue: str) -> AsyncIterator[tuple[int, "asyncio.Future[str]"]]:
    """Its port, and what the page says at last of what it could read."""
    done: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def page(_: web.Request) -> web.Response:
        return web.Response(text=ATTACK.format(queue=queue), content_type="text/html")

    async def end(request: web.Request) -> web.Response:
        if not done.done():
            done.set_result(request.query["stolen"])
        return web.Response()

    app = web.Application()
    app.add_routes([web.get("/", page), web.get("/done", end)])
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield runner.addresses[0][1], done
    finally:
        await runner.cleanup()


@contextlib.contextmanager
def visitor(url: str, profile: Path) -> Iterator[None]:
    """A browser that opens a page."""
    rules = f"MAP {QUEUE} 127.0.0.1, MAP {EVIL} 127.0.0.1"
    command = [
        *(headless.browser(), "--headless", *headless.FLAGS),
        *(f"--user-data-dir={profile}", f"--host-resolver-rules={rules}"),
        *("--no-first-run", "--remote-debugging-port=0", url),
    ]
    # The program is a script that does not become the browser: the two are a group to be ended.
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    ) as browser:
        try:
            yield
        finally:
            os.killpg(browser.pid, signal.SIGTERM)


async def test_a_foreign_page_changes_nothing_and_reads_nothing_over_plain_http(
    tmp_path: Path,
) -> None:
    flags = ("--insecure", "--allow-host", QUEUE, "--access-log", "all")
    async with running(tmp_path / "data", *flags) as server, server.client() as client:
        ids = set(await client.enqueue_many(20))
        async with evil_site(f"{QUEUE}:{server.port}") as (port, done):
            with visitor(f"http://{EVIL}:{port}/", tmp_path / "profile"):
                stolen = await asyncio.wait_for(done, 60)
                held = await client.count(status="in_flight")
        jobs = await client.jobs()
        assert stolen == "0"
        assert {job["id"] for job in jobs} == ids
        assert held == 0
        assert [job for job in jobs if "dequeued_at" in job] == []
