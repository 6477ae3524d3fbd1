"""Groups of cron entries: what is sent of them, and what the server shows."""

from typing import Any

from .client import Client, Doc, new_job

HOUR_MS = 3_600_000
SECOND_MS = 1_000


def entry(name: str = "e", expression: str = "* * * * * *", **fields: Any) -> Doc:
    """The body of an entry; fields of its job are in `job`."""
    job = new_job(**fields.pop("job", {}))
    return {"name": name, "expression": expression, "job": job, **fields}


async def put(client: Client, group: str, *entries: Doc, **fields: Any) -> Doc:
    reply = await client.call("PUT", f"/crons/{group}", {"entries": list(entries), **fields})
    assert reply.status == 200, reply.doc
    doc: Doc = reply.doc
    return doc


async def entry_of(client: Client, group: str, name: str) -> Doc:
    reply = await client.get(f"/crons/{group}/entries/{name}")
    assert reply.status == 200, reply.doc
    doc: Doc = reply.doc
    return doc


async def until_moved(client: Client, group: str, name: str, before: Doc) -> Doc:
    """The entry once it has another next time: the clock has been moved on."""
    for _ in range(10_000):
        now = await entry_of(client, group, name)
        if now["next_enqueue_at"] != before["next_enqueue_at"]:
            return now
    raise AssertionError("the entry does not move on")
