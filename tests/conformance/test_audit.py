"""The audit: what operators do is recorded, with who did it and what came of it."""

import asyncio
from urllib.parse import quote

import httpx
import msgspec
import pytest
from rooms import needs
from store.rig import only_sqlite

from zq.features.audit.model import OperatorAction
from zq.features.audit.verbs import summary_of

from .claims import claim
from .client import JSON, Client, Doc, new_job
from .streams import PATIENCE_S, pause
from .test_dead_letter import slow_sweep
from .test_sweeps import leave


async def actions(client: Client, **params: object) -> list[Doc]:
    reply = await client.get("/audit", **params)
    assert reply.status == 200, reply.doc
    found: list[Doc] = reply.doc["actions"]
    return found


async def test_actions_are_recorded_the_latest_first_and_survive_a_restart(client: Client) -> None:
    assert await actions(client) == []
    jobs = [(await client.post("/jobs", new_job(queue="q"))).doc["id"] for _ in range(3)]
    await client.patch("/queues/q/settings", {"paused": True, "pause_reason": "moving"})
    await client.send("DELETE", f"/jobs/{jobs[0]}")
    assert (await client.post("/jobs/cancel?queue=q&status=ready", {})).doc == {"cancelled": 2}
    await client.site.restart()
    cancel, delete, pause = await actions(client)
    assert (cancel["seq"], delete["seq"], pause["seq"]) == (3, 2, 1)
    assert (pause["method"], pause["path"]) == ("PATCH", "/queues/q/settings")
    assert pause["answer"] == {"paused": True, "pause_reason": "moving"}
    assert (delete["path"], delete["status"]) == (f"/jobs/{jobs[0]}", 204)
    assert (cancel["query"], cancel["answer"]) == ("queue=q&status=ready", {"cancelled": 2})
    assert cancel["at"] == client.site.now and cancel["address"] == "127.0.0.1"
    assert "actor" not in cancel, "there are no keys"


async def test_work_reading_and_what_was_refused_are_no_actions(client: Client) -> None:
    await client.post("/jobs", new_job())
    stream = await client.take()
    job = await stream.job()
    await client.post("/jobs/success", {"ids": [job["id"]]})
    await client.get("/queues")
    assert (await client.send("DELETE", f"/jobs/{job['id']}")).status == 404
    assert (await client.patch("/queues/q/settings", {"paused": 1})).status == 400
    assert await actions(client) == []


async def test_pages_go_back_by_their_numbers(client: Client) -> None:
    for number in range(5):
        await client.patch(f"/queues/q{number}/settings", {"rate": 1})
    assert [each["seq"] for each in await actions(client, limit=2)] == [5, 4]
    assert [each["seq"] for each in await actions(client, limit=2, before=4)] == [3, 2]
    assert [each["seq"] for each in await actions(client, limit=2, before=2)] == [1]
    assert await actions(client, before=1) == []
    assert (await client.get("/audit", limit=0)).status == 400


async def test_lines_are_for_scripts(client: Client) -> None:
    await client.patch("/queues/q/settings", {"rate": 1})
    await client.patch("/queues/q/settings", {"rate": 2})
    lines = await client.send("GET", "/audit", headers={"accept": "application/x-ndjson"})
    assert [msgspec.json.decode(line)["seq"] for line in lines.body.splitlines()] == [2, 1]


async def test_a_large_answer_is_left_out(client: Client) -> None:
    job = new_job(queue="q" * 400, unique_key="k" * 400)
    id = (await client.post("/jobs", job)).doc["id"]
    await client.post(f"/jobs/{id}/cancel", {})
    (action,) = await actions(client)
    assert "answer" not in action


@needs("doors.topics")
@pytest.mark.parametrize("wire", [JSON], ids=str)
async def test_all_doors_are_recorded(client: Client) -> None:
    await client.post("/api/topics/t/consumer-groups", {"consumer_group": "a"})
    await client.call("PUT", "/v0/topics/log", {})
    found = [(each["method"], each["path"]) for each in await actions(client)]
    assert found == [("PUT", "/v0/topics/log"), ("POST", "/api/topics/t/consumer-groups")]


async def test_what_was_done_for_a_client_that_has_gone_is_recorded(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A client that has finished sending may still read: it would be served for a while.
    monkeypatch.setattr("zq.http.transport.connection.HALF_CLOSED_S", 0.0)
    request, _ = await slow_sweep(client)
    await leave(request)
    async with asyncio.timeout(PATIENCE_S):
        while not (found := await actions(client)):
            await pause()
    (action,) = found
    assert (action["path"], action["status"]) == ("/jobs/cancel", 499)
    assert "answer" not in action


@only_sqlite
@pytest.mark.settings(no_admin=False, admin_port=0)
@pytest.mark.parametrize("wire", [JSON], ids=str)
async def test_a_backup_is_recorded_also_if_it_breaks_off(client: Client) -> None:
    await client.enqueue(payload={"secret": "s" * 4_000_000})
    url = f"{client.site.admin_url}/backup"
    async with httpx.AsyncClient(trust_env=False) as http:
        assert (await http.post(url)).status_code == 200
        async with http.stream("POST", url) as broken:
            assert broken.status_code == 200
    async with asyncio.timeout(PATIENCE_S):
        while len(found := await actions(client)) < 2:
            await pause()
    assert [(each["method"], each["path"]) for each in found] == [("POST", "/backup")] * 2
    assert found[1]["status"] == 200


@pytest.mark.settings(no_admin=False, admin_port=0, ui_mask="password")
@pytest.mark.parametrize("wire", [JSON], ids=str)
async def test_who_looks_at_what_is_hidden_is_recorded_without_what_was_seen(
    client: Client,
) -> None:
    job = await client.enqueue(payload={"password": "hunter2"})
    page = f"{client.site.admin_url}/ui"
    async with httpx.AsyncClient(trust_env=False) as http:
        hidden = await http.get(f"{page}/api/jobs/{job['id']}")
        assert "hunter2" not in hidden.text
        assert await actions(client) == []
        shown = await http.get(f"{page}/reveal/jobs/{job['id']}")
        assert "hunter2" in shown.text
    (action,) = await actions(client)
    assert (action["method"], action["path"]) == ("GET", f"/jobs/{job['id']}")
    assert action["verb"] == "reveal"
    assert "answer" not in action


@pytest.mark.settings(no_admin=False, admin_port=0, ui_mask="password")
@pytest.mark.parametrize("wire", [JSON], ids=str)
async def test_what_the_page_cannot_show_is_not_done(client: Client) -> None:
    job = await client.enqueue()
    url = f"{client.site.admin_url}/ui/api/jobs/{job['id']}/cancel"
    async with httpx.AsyncClient(trust_env=False) as http:
        refused = await http.post(url, headers={"Accept": "application/msgpack"})
    assert (refused.status_code, "in JSON only" in refused.text) == (400, True)
    assert (await client.job(job["id"]))["status"] == "ready"
    assert await actions(client) == []


@pytest.mark.parametrize(("jobs", "room"), [(300, 260), (10, 5)], ids=["slices", "one slice"])
async def test_what_was_done_before_a_refusal_is_recorded(
    client: Client, jobs: int, room: int
) -> None:
    kept = {"retention": {"completed_ms": 60_000}}
    await client.patch("/queues/mail/settings", kept)
    await client.enqueue_many(jobs, queue="mail")
    done = [job["id"] for job in await claim(client, "mail", max=jobs)]
    await client.post("/jobs/success", {"ids": done})
    await client.patch("/queues/mail/settings", {"max_depth": room})

    refused = await client.send("POST", "/queues/mail/replay")
    assert (refused.status, await client.count(status="ready")) == (429, room)
    (action,) = await actions(client, limit=1)
    assert (action["path"], action["status"]) == ("/queues/mail/replay", 429)
    assert action["answer"]["error"] == refused.error
    assert action["words"].endswith(", in part, and was refused the rest (429)")
    assert (await client.send("POST", "/queues/other/replay")).status == 422
    assert len(await actions(client)) == 3


@pytest.mark.settings(no_audit=True)
async def test_nothing_is_recorded_where_nobody_wants_it(client: Client) -> None:
    await client.patch("/queues/q/settings", {"rate": 1})
    assert await actions(client) == []


@needs("doors.topics")
@pytest.mark.parametrize("wire", [JSON], ids=str)
async def test_an_action_is_told_in_words(client: Client) -> None:
    jobs = await client.enqueue_many(3, queue="mail", type="letter")
    await client.post("/jobs/cancel?queue=mail&type=letter&reason=wrong+list", {})
    await client.send("DELETE", f"/jobs/{jobs[0]}")
    await client.patch("/queues/mail/settings", {"paused": True, "pause_reason": "moving"})
    await client.call("PUT", "/v0/topics/log", {})
    told = [(each["verb"], each["words"]) for each in await actions(client)]
    who = "somebody at 127.0.0.1"
    assert told == [
        ("put", f"{who} asked for PUT /v0/topics/log"),
        ("pause", f"{who} paused mail (moving)"),
        ("delete", f"{who} deleted the job {jobs[0]}"),
        ("cancel", f"{who} cancelled 3 jobs of mail (type:letter): wrong list"),
    ]


@pytest.mark.parametrize("queue", ["a%41", "50%", "x/ui/api/queues/pay", "\N{SNOWMAN} b"])
async def test_an_action_names_the_queue_that_it_changed(client: Client, queue: str) -> None:
    path = f"/queues/{quote(queue, safe='')}/settings"
    await client.patch(path, {"max_depth": 9})
    (action,) = await actions(client, queue=queue)
    assert action["words"].endswith(f" changed max_depth of {queue}")
    assert (action["path"], action["queues"]) == (path, [queue])


@pytest.mark.settings(no_admin=False, admin_port=0, public_url="https://example.org/jobs")
@pytest.mark.parametrize("prefix", ["/ui", "/jobs/ui"])
@pytest.mark.parametrize("wire", [JSON], ids=str)
async def test_what_was_done_on_the_page_has_the_path_of_the_api(
    client: Client, prefix: str
) -> None:
    url = f"{client.site.admin_url}{prefix}/api/queues/mail/settings"
    async with httpx.AsyncClient(trust_env=False) as http:
        assert (await http.patch(url, json={"rate": 1})).status_code == 200
    (action,) = await actions(client, verb="settings")
    assert (action["path"], action["queues"]) == ("/queues/mail/settings", ["mail"])
    assert (await client.patch(action["path"], action["before"])).doc == {}


async def test_actions_are_chosen_by_who_what_where_and_when(client: Client) -> None:
    await client.patch("/queues/mail/settings", {"rate": 1})
    client.site.clock.advance(10)
    begin = client.site.now
    await client.patch("/queues/other/settings", {"rate": 1})
    await client.post("/jobs/requeue?queue=mail", {})

    async def paths(**choice: object) -> list[str]:
        return [each["path"] for each in await actions(client, **choice)]

    assert await paths(queue="mail") == ["/jobs/requeue", "/queues/mail/settings"]
    assert await paths(verb="settings") == ["/queues/other/settings", "/queues/mail/settings"]
    assert await paths(verb="settings", queue="mail") == ["/queues/mail/settings"]
    assert await paths(until=begin - 1) == ["/queues/mail/settings"]
    assert await paths(since=begin, limit=1) == ["/jobs/requeue"]
    assert len(await paths(who="127.0.0.1")) == 3
    assert await paths(who="mia") == []
    for name in ("who", "verb", "queue", "since", "until"):
        reply = await client.send("GET", f"/audit?{name}=")
        assert (reply.status, f"`{name}` is empty" in reply.error) == (400, True)


async def test_a_change_of_settings_tells_what_it_takes_to_undo_it(client: Client) -> None:
    begin = {"concurrency": 8, "retention": {"dead_ms": 1_000}, "rate": 5}
    await client.patch("/queues/mail/settings", begin)
    change = {"concurrency": 2, "retention": {"completed_ms": 7}, "max_depth": 9, "rate": 5}
    await client.patch("/queues/mail/settings", change)
    latest, first = await actions(client)
    assert first["before"] == {"concurrency": None, "retention": None, "rate": None}
    assert latest["before"] == {
        "concurrency": 8,
        "retention": {"completed_ms": None, "dead_ms": 1_000},
        "max_depth": None,
    }
    assert sorted(
        latest["words"].partition(" changed ")[2].removesuffix(" of mail").split(", ")
    ) == [
        *("concurrency", "max_depth", "retention"),
    ]
    undone = await client.patch("/queues/mail/settings", latest["before"])
    assert undone.doc == begin
    await client.patch("/queues/mail/settings", {"paused": True, "pause_reason": "moving"})
    (pause,) = await actions(client, verb="pause")
    assert (await client.patch("/queues/mail/settings", pause["before"])).doc == begin
    (resume,) = await actions(client, verb="resume")
    assert resume["words"].endswith(" resumed mail")
    await client.delete("/queues/mail/settings")
    (cleared,) = await actions(client, limit=1)
    assert (await client.patch("/queues/mail/settings", cleared["before"])).doc == begin


def test_older_records_have_paths_of_the_page_without_escapes() -> None:
    path, before = "/ui/api/queues/50%/settings", {"rate": None}
    action = OperatorAction(0, "PATCH", path, 200, "::1", before=before)
    assert summary_of(action) == ("settings", ("50%",), "somebody at ::1 changed rate of 50%")
