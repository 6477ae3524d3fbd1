"""`zq change`: another queue, priority or time for jobs that have not finished."""

import pytest

from .shell import Shell

AT = 1_896_109_200_000
"""2030-01-31T17:00:00Z."""


async def test_a_job_gets_another_queue_and_priority(shell: Shell) -> None:
    first, second, other = await shell.push(1, 2, 3, priority=5)
    said = await shell.zq(
        "change", first.id, second.id, "--queue", "slow", "--create", "--priority", "7"
    )
    assert said.code == 0
    assert said.output == "".join(
        f"{job.id} is ready in slow, with the priority 7\n" for job in (first, second)
    )
    changed = await shell.backend.get(first.id)
    assert (changed.queue, changed.priority, changed.ready_at) == ("slow", 7, first.ready_at)
    kept = await shell.backend.get(other.id)
    assert (kept.queue, kept.priority) == ("mail", 5)


async def test_what_is_not_named_stays(shell: Shell) -> None:
    (job,) = await shell.push(1, priority=5)
    await shell.zq("change", job.id, "--at", "2030-01-31T18:00+01:00")
    changed = await shell.backend.get(job.id)
    assert (changed.queue, changed.priority) == ("mail", 5)
    assert (changed.status, changed.ready_at) == ("scheduled", AT)
    await shell.zq("change", job.id, "--priority", "0")
    changed = await shell.backend.get(job.id)
    assert (changed.status, changed.ready_at, changed.priority) == ("scheduled", AT, 0)


async def test_a_job_is_delayed_and_made_ready_again(shell: Shell) -> None:
    (job,) = await shell.push(1)
    said = await shell.zq("change", job.id, "--delay", "1h", "--json")
    (changed,) = said.documents
    assert changed["status"] == "scheduled"
    assert changed["ready_at"] >= job.created_at + 3_600_000
    said = await shell.zq("change", job.id, "--delay", "0s")
    assert said.output == f"{job.id} is ready in mail, with the priority {job.priority}\n"


async def test_a_finished_or_unknown_job_does_not_keep_the_others(shell: Shell) -> None:
    finished, waits = await shell.push(1, 2)
    await shell.finish("mail", error="boom")
    said = await shell.zq("change", finished.id, "0" * 26, waits.id, "--queue", "slow", "--create")
    assert said.code == 1
    assert said.output.startswith(f"{waits.id} is ready in slow")
    assert f"{finished.id}: cannot patch job {finished.id} in dead status" in said.errors
    assert "2 of 3 jobs were not changed" in said.errors


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ((), "say what to change: --queue, --priority, --delay or --at"),
        (("--delay", "1h", "--at", "2030-01-31"), "give --delay or --at, not both"),
        (("--at", "7d"), "'7d' is not a time: write 2026-01-31 or 2026-01-31T18:00"),
        (("--queue", "a,b"), "queue must not contain"),
        (("--queue", " "), "the name is empty"),
        (("--priority", "-1"), "-1 is not in the range 0<=x<=65535"),
    ],
)
async def test_nothing_is_changed_by_a_wrong_word(
    shell: Shell, words: tuple[str, ...], complaint: str
) -> None:
    (job,) = await shell.push(1)
    said = await shell.zq("change", job.id, *words)
    assert said.code == 2
    assert complaint in said.errors
    assert (await shell.backend.get(job.id)).status == "ready"
