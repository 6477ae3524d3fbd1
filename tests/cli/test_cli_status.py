"""`zq status`: everything about one job."""

from .shell import Shell

UNKNOWN = "job not found: no job has this id, or the job has finished and was not kept"


async def test_it_shows_what_there_is_of_a_job(shell: Shell) -> None:
    (job,) = await shell.push({"to": "ann"}, group="g")
    said = await shell.zq("status", job.id)
    assert said.code == 0
    shown = dict(line.split(None, 1) for line in said.output.splitlines())
    assert (shown["id"], shown["status"], shown["group"]) == (job.id, "ready", "g")
    assert shown["payload"] == '{"to":"ann"}'
    assert shown["created_at"].endswith("ago")
    assert "unique_key" not in shown


async def test_it_shows_a_job_that_is_never_due(shell: Shell) -> None:
    (job,) = await shell.push(1, ready_at=2**62)
    said = await shell.zq("status", job.id)
    shown = dict(line.split(None, 1) for line in said.output.splitlines())
    assert shown["ready_at"].startswith("9999-12-31 23:59:59 UTC, in ")


async def test_it_tells_how_a_job_failed(shell: Shell) -> None:
    (job,) = await shell.push(1)
    await shell.finish("mail", error="no such\nmailbox", trace="Traceback:\n  in \x1b[31mshop.py")
    said = await shell.zq("status", job.id)
    *_, failure, head, frame = said.output.splitlines()
    assert failure.split(None, 2) == ["failure", "1", "ValueError: no such mailbox"]
    # What came from a worker cannot colour the terminal.
    assert (head, frame) == ("  Traceback:", "    in \\x1b[31mshop.py")
    (told,) = (await shell.zq("status", job.id, "--json")).documents
    assert (told["status"], told["reason"]) == ("dead", "killed")
    assert told["errors"][0]["message"] == "no such\nmailbox"


async def test_it_tells_which_worker_had_the_job(shell: Shell) -> None:
    (job,) = await shell.push(1)
    await shell.finish("mail", error="no", worker="edge 7")
    said = await shell.zq("status", job.id)
    assert said.table[-1] == ["failure 1", "ValueError: no (by edge 7)"]


async def test_it_shows_what_an_exception_says_of_itself(shell: Shell) -> None:
    (job,) = await shell.push(1)
    await shell.finish("mail", error="no", trace='Traceback…\nzq details: {"code":"GONE"}')
    said = await shell.zq("status", job.id)
    assert said.table[-3:-1] == [["failure 1", "ValueError: no"], ["details", '{"code":"GONE"}']]
    assert said.output.splitlines()[-1] == "  Traceback…"


async def test_an_unknown_job_gives_1(shell: Shell) -> None:
    said = await shell.zq("status", "0" * 26)
    assert (said.code, said.output, said.errors) == (1, "", f"Error: {UNKNOWN}\n")


async def test_it_says_why_a_job_does_not_run(shell: Shell) -> None:
    _, job = await shell.push(1, 2)
    told = (await shell.zq("status", job.id)).table
    nobody = 'nobody takes jobs of queue "mail"'
    assert told[-2:] == [["why", nobody], ["why", "1 job of its queue comes first"]]
    (document,) = (await shell.zq("status", job.id, "--json")).documents
    assert document["why"][0] == {"code": "no_worker", "text": nobody, "queue": "mail"}
    await shell.zq("cancel", job.id)
    assert "why" not in (await shell.zq("status", job.id)).output
