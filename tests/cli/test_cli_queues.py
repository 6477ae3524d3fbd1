"""`zq queues`: the jobs and the traffic of each queue."""

from .shell import Shell

HEAD = (
    *("QUEUE", "READY", "SCHEDULED", "IN FLIGHT", "DEAD", "OLDEST READY"),
    *("TAKEN/S", "DONE/S", "FAILED/S", "WORKERS", "STATE"),
)


async def test_each_queue_has_a_row(shell: Shell) -> None:
    await shell.push(*range(3))
    await shell.push(1, queue="sums")
    await shell.finish("mail", 1)
    await shell.finish("sums", error="boom")
    said = await shell.zq("queues")
    head, mail, sums = said.table
    assert tuple(head) == HEAD
    assert mail[:5] == ["mail", "2", "0", "0", "0"]
    assert mail[5].endswith("s")
    assert (mail[-1], sums[:5]) == ("0", ["sums", "0", "0", "0", "1"])
    assert len(sums) == len(HEAD) - 2  # nothing is ready, nothing wrong


async def test_queues_that_are_paused_say_so(shell: Shell) -> None:
    await shell.push(1)
    await shell.push(1, queue="sums")
    await shell.zq("pause", "sums", "--reason", "moved")
    _, sums, mail = (await shell.zq("queues")).table
    assert (mail[-1], sums[-1]) == ("0", "paused (moved), 1 waiting")
    told = (await shell.zq("queues", "--json")).documents
    assert [(each["queue"], each["paused"]) for each in told] == [("sums", True), ("mail", False)]


async def test_scripts_get_the_statistics_of_the_queues_that_they_name(shell: Shell) -> None:
    await shell.push(1, 2)
    await shell.push(1, queue="sums")
    assert [each["queue"] for each in (await shell.zq("queues", "--json")).documents] == [
        "mail",
        "sums",
    ]
    (told,) = (await shell.zq("queues", "mail", "--json")).documents
    assert (told["queue"], told["counts"]["ready"]) == ("mail", 2)
    assert told["deliveries"] == {"total": 0, "per_second_1m": 0.0, "per_second_5m": 0.0}
    assert told["oldest_ready_age_ms"] >= 0


async def test_queues_come_in_the_order_that_is_asked_for(shell: Shell) -> None:
    await shell.push(1)
    await shell.push(1, 2, 3, queue="sums")
    for _ in range(5):
        await shell.push(1, queue="sms")
        await shell.finish("sms", error="boom")
    for sort, order in (
        ("worst", ["sms", "sums", "mail"]),
        ("waiting", ["sums", "mail", "sms"]),
        ("dead", ["sms", "mail", "sums"]),
        ("name", ["mail", "sms", "sums"]),
    ):
        told = (await shell.zq("queues", "--sort", sort, "--json")).documents
        assert [each["queue"] for each in told] == order
    assert told[1]["state"] == "failing"
