"""`zq workers`: who takes jobs, and dropping a worker; `zq mark`."""

from zq.client.values import JobQuery, TakeRequest

from .shell import Shell


async def test_open_streams_are_listed(shell: Shell) -> None:
    assert (await shell.zq("workers", "list")).table[1:] == []
    (job,) = await shell.push(1)
    stream = await shell.backend.take(TakeRequest(("mail", "sms"), 3, "w 1"))
    await stream.deliveries()
    (_, row) = (await shell.zq("workers", "list")).table
    assert row[:7] == ["w 1", "mail,sms", "1", "1", "1", "3", "1"]
    assert row[-1] == "takes jobs"
    await shell.backend.drain("w 1")
    (document,) = (await shell.zq("workers", "list", "--json")).documents
    assert (document["id"], document["held"], document["draining"]) == ("w 1", [job.id], True)
    await stream.close()


async def test_a_worker_is_dropped_and_its_jobs_go_back(shell: Shell) -> None:
    (job,) = await shell.push(1)
    streams = [await shell.backend.take(TakeRequest(("mail",), 1, "w/1")) for _ in range(2)]
    # Both are open now. The job is in one of them.
    said = await shell.zq("workers", "drop", "w/1")
    assert (said.code, said.output) == (0, "2 streams of w/1 closed\n")
    other = await shell.backend.take(TakeRequest(("mail",), 1, "other"))
    (again, *_) = await other.deliveries()
    assert getattr(again, "id", None) == job.id
    for stream in (*streams, other):
        await stream.close()
    assert (await shell.backend.get(job.id)).attempts == 0


async def test_a_worker_without_a_stream_cannot_be_dropped(shell: Shell) -> None:
    said = await shell.zq("workers", "drop", "nobody")
    assert (said.code, said.output) == (1, "")
    assert "no worker with this id has a stream open" in said.errors
    assert await shell.backend.count(JobQuery()) == 0


async def test_a_moment_gets_a_name(shell: Shell) -> None:
    said = await shell.zq("mark", "release 1.8.2")
    assert (said.code, said.output) == (0, "release 1.8.2 is marked\n")
    (document,) = (await shell.zq("mark", "release 1.8.3", "--json")).documents
    assert document["text"] == "release 1.8.3" and document["at"] > 0
    refused = await shell.zq("mark", " ")
    assert (refused.code, refused.output) == (1, "")
    assert "1 to 200 characters" in refused.errors
