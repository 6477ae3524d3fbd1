"""Jobs of the other doors share a queue by the field that its setting names."""

from doors.queue_ti.messages import Messages
from doors.topics.queues import Queue

SHARED = {"fair": {"key": "payload.tenant"}}


def sent(tenant: str, number: int) -> dict[str, object]:
    return {"tenant": tenant, "n": number}


FLOOD = [sent("acme", number) for number in range(20)]
LATER = sent("tiny", 0)


async def test_a_tenant_that_floods_a_topic_of_v0_keeps_no_other_waiting(queue: Queue) -> None:
    native = queue.records.native
    assert (await native.call("PUT", "/queues/q/settings", SHARED)).status == 200
    await queue.records.append("q", *FLOOD)
    await queue.records.append("q", LATER)

    taken = [each["data"] for _ in range(2) for each in await queue.claim(1)]

    assert taken == [FLOOD[0], LATER]


async def test_a_tenant_that_floods_a_topic_of_api_keeps_no_other_waiting(api: Messages) -> None:
    """A payload is a text there, so the key is in the metadata."""
    setting = {"fair": {"key": "meta.tenant"}}
    assert (await api.native.call("PUT", "/queues/q/settings", setting)).status == 200
    for number in range(20):
        await api.enqueue("q", str(number), metadata={"tenant": "acme"})
    await api.enqueue("q", "later", metadata={"tenant": "tiny"})

    taken = [each["payload"] for _ in range(2) for each in await api.dequeue("q")]

    assert taken == ["0", "later"]
