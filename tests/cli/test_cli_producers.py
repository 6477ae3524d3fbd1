"""`zq producers`, and files that are pushed by the numbers of their jobs."""

import json

import pytest

from zq.cli.bulk import BATCH_JOBS

from .shell import Shell
from .test_cli_push import NOBODY, payloads, write


async def test_a_file_that_is_pushed_again_stores_what_is_missing(shell: Shell) -> None:
    count = 2 * BATCH_JOBS + 7
    lines: list[object] = [{"queue": "q", "payload": n} for n in range(count)]
    half = write(shell, *lines[: BATCH_JOBS + 3])
    first = await shell.zq("push", "--file", half, "--producer", "day-1")
    assert (first.code, first.output) == (0, f"{BATCH_JOBS + 3:,} jobs stored\n")

    whole = write(shell, *lines[:5], "", *lines[5:])
    again = await shell.zq("push", "--file", whole, "--producer", "day-1")
    once_more = await shell.zq("push", "--file", whole, "--producer", "day-1", "--json")

    assert again.output == f"{BATCH_JOBS + 4:,} jobs stored, {BATCH_JOBS + 3:,} existed already\n"
    assert json.loads(once_more.output) == {"stored": 0, "duplicates": count}
    assert await shell.backend.count() == count


async def test_a_wrong_line_stops_a_numbered_file_until_it_is_mended(shell: Shell) -> None:
    name = write(shell, {"queue": "q", "payload": 1}, {"queue": "q"}, {"queue": "q", "payload": 3})
    said = await shell.zq("push", "--file", name, "--producer", "day-1")
    assert said.code == 1 and "Stopped at line 2" in said.errors
    assert "The same command goes on there" in said.errors and "--from-line" not in said.errors

    name = write(shell, *({"queue": "q", "payload": n} for n in (1, 2, 3)))
    said = await shell.zq("push", "--file", name, "--producer", "day-1")
    assert said.output == "2 jobs stored, 1 existed already\n"
    assert await payloads(shell) == [1, 2, 3]


async def test_producers_are_listed_and_forgotten(shell: Shell) -> None:
    name = write(shell, {"queue": "q", "payload": 1})
    for producer in ("day-1", "day-2"):
        await shell.zq("push", "--file", name, "--producer", producer)

    listed = await shell.zq("producers", "list", "--json")
    documents = [json.loads(line) for line in listed.output.splitlines()]
    assert [(each["name"], each["last"]) for each in documents] == [("day-1", 1), ("day-2", 1)]
    table = await shell.zq("producers", "list")
    assert "PRODUCER" in table.output and "day-2" in table.output

    gone = await shell.zq("producers", "forget", "day-1")
    assert (gone.code, gone.output) == (0, "the producer day-1 is forgotten\n")
    missing = await shell.zq("producers", "forget", "day-1")
    assert missing.code == 1 and "'day-1' is not known" in missing.errors


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (("mail", "1", "--producer", "p"), "need --file"),
        (("--file", "-", "--producer", "p", "--from-line", "2"), "leave out --from-line"),
    ],
)
async def test_a_wrong_use_of_producers_gives_2(
    shell: Shell, words: tuple[str, ...], named: str
) -> None:
    said = await shell.zq("push", *words)
    assert said.code == 2 and named in said.errors


async def test_without_a_server_nothing_is_numbered(shell: Shell) -> None:
    name = write(shell, {"queue": "q", "payload": 1})
    said = await shell.zq("push", "--file", name, "--producer", "p", "--url", NOBODY)
    assert said.code == 3
