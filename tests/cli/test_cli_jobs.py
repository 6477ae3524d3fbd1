"""`zq jobs`: lists of jobs."""

import re
import signal
import sys
from pathlib import Path

import pytest
from rich.cells import cell_len

from zq.features.failures.model import cause_of

from .shell import Shell
from .top.terminal import terminal

WITH_CTRL_C = """\
import signal
from zq.cli.group import main
# Whoever runs the tests in the background has it ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)
main()
"""


def plain(drawn: str) -> list[str]:
    """The lines on a terminal, without their colours."""
    return re.sub(r"\x1b\[[0-9;]*m", "", drawn).splitlines()


async def test_a_pipe_gets_aligned_columns(shell: Shell) -> None:
    (job,) = await shell.push({"to": "ann"})
    (later,) = await shell.push("text", ready_at=job.created_at + 86_400_000)
    said = await shell.zq("jobs")
    assert said.code == 0
    head, first, second = said.output.splitlines()
    assert head.split() == ["ID", "QUEUE", "TYPE", "STATUS", "FAILED", "CREATED", "DUE", "PAYLOAD"]
    for line, id, status, payload in (
        (first, job.id, "ready", '{"to":"ann"}'),
        (second, later.id, "scheduled", "text"),
    ):
        assert line.startswith(f"{id}  mail   letter  {status} ")
        assert line[head.index("PAYLOAD") :] == payload
    assert "in 23h 59m" in second


async def test_scripts_get_a_document_a_line(shell: Shell) -> None:
    jobs = await shell.push(None, {"n": 1})
    said = await shell.zq("jobs", "--json")
    assert [each["id"] for each in said.documents] == [job.id for job in jobs]
    assert said.documents[0] == {
        "id": jobs[0].id,
        "queue": "mail",
        "type": "letter",
        "status": "ready",
        "priority": jobs[0].priority,
        "ready_at": jobs[0].ready_at,
        "attempts": 0,
        "payload": None,
        "created_at": jobs[0].created_at,
        "duplicate": False,
        "replaced": False,
        "folded": False,
    }


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("--queue", "mail"), [1, 2]),
        (("--queue", "mail,sums"), [1, 2, 3]),
        (("--type", "add"), [3]),
        (("--status", "ready"), [1, 3]),
        (("--status", "ready,scheduled"), [1, 2, 3]),
        (("--filter", ". > 1", "--queue", "mail"), [2]),
        (("--priority", "..9"), [3]),
        (("--priority", "5", "--group", "a,b"), [3]),
        (("--group", "b"), []),
        (("--attempts", "1.."), []),
        (("--attempts", "0"), [1, 2, 3]),
        (("--ready-before", "0s"), [1, 3]),
        (("--ready-before", "1h"), []),
        (("--ready-after", "1h", "--ready-before", "2099-01-31T18:00"), [1, 2, 3]),
        (("--limit", "2"), [1, 2]),
        (("--newest",), [3, 2, 1]),
        (("--newest", "--limit", "2"), [3, 2]),
    ],
)
async def test_options_choose(shell: Shell, words: tuple[str, ...], expected: list[int]) -> None:
    (first,) = await shell.push(1)
    await shell.push(2, ready_at=first.created_at + 86_400_000)
    await shell.push(3, queue="sums", type="add", group="a", priority=5)
    said = await shell.zq("jobs", "--json", *words)
    assert [each["payload"] for each in said.documents] == expected


async def test_jobs_are_chosen_by_the_cause_of_their_failure(shell: Shell) -> None:
    (job,) = await shell.push(1)
    await shell.finish("mail", error="no user 7")
    await shell.push(2)
    signature = cause_of("ValueError", "no user 8").signature
    (told,) = (await shell.zq("jobs", "--error", signature, "--json")).documents
    assert told["id"] == job.id


async def test_more_than_a_page_comes_whole_and_in_order(shell: Shell) -> None:
    await shell.push(*range(2500))
    said = await shell.zq("jobs", "--json", "--limit", "2200")
    assert [each["payload"] for each in said.documents] == list(range(2200))


async def test_it_tells_of_those_that_it_does_not_show(shell: Shell) -> None:
    await shell.push(*range(52))
    said = await shell.zq("jobs")
    assert len(said.output.splitlines()) == 51
    assert said.errors == "2 more: --limit 52 shows all\n"
    assert (await shell.zq("jobs", "--limit", "52")).errors == ""


async def test_a_terminal_gets_a_table_in_which_nothing_steers_it(shell: Shell) -> None:
    (job,) = await shell.push("\x1b[2J[bold]\x9b2J")
    said = await shell.on_terminal("jobs")
    assert job.id in said
    assert "─" in said
    assert "\x1b[2J" not in said
    assert "\x9b" not in said
    assert "[bold]" in said


@pytest.mark.parametrize("columns", [60, 80, 100, 200])
async def test_a_table_is_not_wider_than_the_terminal(shell: Shell, columns: int) -> None:
    payload = {"to": "ann@example.org", "text": "a long letter " * 9}
    jobs = await shell.push(payload, payload, queue="letters", type="send_a_letter")
    (later,) = await shell.push("日本語" * 30, ready_at=jobs[0].created_at + 86_400_000)
    lines = plain(await shell.on_terminal("jobs", columns=columns))
    assert max(map(cell_len, lines)) <= columns
    assert len(lines) == 5
    for job, line in zip((*jobs, later), lines[2:], strict=True):
        assert line.startswith(f"{job.id}   ")
        assert "ready" in line or "scheduled" in line
    assert ("FAILED" in lines[0], "PAYLOAD" in lines[0]) == (columns > 100, columns > 80)


async def test_the_tables_of_queues_and_the_dead_fit_eighty_columns(shell: Shell) -> None:
    await shell.push(1, queue="letters-to-customers", type="send_a_letter")
    dead = await shell.finish("letters-to-customers", error="no such address " * 9)
    for command, kept in (("queues", "letters-to-customers"), ("dead", dead.id)):
        lines = plain(await shell.on_terminal(command, columns=80))
        assert max(map(cell_len, lines)) <= 80
        assert len(lines) == 3
        assert kept in lines[2]


async def test_every_other_table_fits_eighty_columns_with_what_names_its_rows(
    shell: Shell, tmp_path: Path
) -> None:
    long = "closes-the-day-of-a-shop"
    entry = ("billing", long, "30 2 * * mon-fri", "reports-of-customers", "--type", long)
    await shell.zq("cron", "add", *entry, "--tz", "America/Argentina/Buenos_Aires")
    await shell.zq("budgets", "set", long, "100000", "--per", "1h", "--burst", "5000")
    keys = str(tmp_path / "keys")
    scopes = ("--scopes", "enqueue,take,read,manage", "--prefix", "shop-,orders-,customers-")
    await shell.zq("keys", "add", long, *scopes, "--keys", keys)
    for words, head in (
        (("cron", "list"), "GROUP   ENTRY   EXPRESSION   NEXT   STATE"),
        (("cron", "next"), "(NEXT   )?AT   GROUP   ENTRY"),
        (("budgets", "list"), "BUDGET   LIMIT   AVAILABLE   WAITING"),
        (("keys", "list", "--keys", keys), "NAME   SCOPES   QUEUES"),
    ):
        lines = plain(await shell.on_terminal(*words, columns=80))
        assert max(map(cell_len, lines)) <= 80, lines
        assert re.fullmatch(head, re.sub(" {3,}", "   ", lines[0].strip())), lines[0]
        assert long in lines[2]


async def test_long_names_are_cut_on_a_terminal_unless_all_is_wanted(shell: Shell) -> None:
    long = "reports-of-the-whole-fleet-" * 7
    await shell.push(1, queue=long, type=long)
    dead = await shell.finish(long, error="no such address")
    for command in ("queues", "dead"):
        lines = plain(await shell.on_terminal(command, columns=80))
        assert max(map(cell_len, lines)) <= 80
        assert len(lines) == 3
        assert "reports-of-" in lines[2]
        assert "…" in lines[2]
        whole = plain(await shell.on_terminal(command, "--wide", columns=80))
        assert long in "".join(whole)
        assert long in (await shell.zq(command)).output
    (told,) = (await shell.zq("dead", "--json")).documents
    assert (told["queue"], told["id"]) == (long, dead.id)


async def test_jobs_are_watched_until_ctrl_c(shell: Shell) -> None:
    (first,) = await shell.push(1)
    words = (sys.executable, "-c", WITH_CTRL_C, "jobs", "--newest", "--watch")
    async with terminal(*words, size=(24, 80), ZQ_URL=shell.url) as screen:
        await screen.shows(first.id)
        (second,) = await shell.push(2)
        await screen.shows(second.id)
        screen.process.send_signal(signal.SIGINT)
        assert await screen.ended() == 130
        await screen.shows("\x1b[?1049l")


@pytest.mark.parametrize("command", ["jobs", "queues"])
async def test_only_a_terminal_is_for_watching(shell: Shell, command: str) -> None:
    for words in ((command, "--watch"), (command, "--watch", "--json")):
        said = await shell.zq(*words)
        assert (said.code, said.output) == (2, "")
        assert "--watch" in said.errors


@pytest.mark.parametrize(
    ("words", "code", "complaint"),
    [
        (("--status", "done"), 2, "'done' is not one of"),
        (("--limit", "0"), 2, "limit"),
        (("--filter", "("), 1, "filter"),
    ],
)
async def test_what_cannot_be_asked(
    shell: Shell, words: tuple[str, ...], code: int, complaint: str
) -> None:
    said = await shell.zq("jobs", *words)
    assert (said.code, said.output) == (code, "")
    assert complaint in said.errors
