"""Jobs that fold, and the answers to their enqueues."""

from typing import Any

from .client import Client, Doc, new_job

APPEND = {"when": "true", "fold": "$existing + $new"}


def batched(payload: Any, key: str = "b", **fields: Any) -> Doc:
    """A job whose payload is added to that of the batch's host."""
    rule = {name: fields.pop(name) for name in ("when", "fold") if name in fields}
    return new_job(payload=payload, batch={"key": key, **APPEND, **rule}, **fields)


async def put(client: Client, payload: Any, key: str = "b", **fields: Any) -> Doc:
    """The answer to an enqueue that is stored or folded."""
    reply = await client.post("/jobs", batched(payload, key, **fields))
    assert reply.status == (200 if reply.doc["folded"] else 201), reply.doc
    job: Doc = reply.doc
    return job


async def refusal(client: Client, payload: Any, **fields: Any) -> tuple[int, str]:
    """Status and message of an enqueue that is refused."""
    reply = await client.post("/jobs", batched(payload, **fields))
    return reply.status, reply.error


async def payload_of(client: Client, job: Doc) -> Any:
    return (await client.job(job["id"]))["payload"]
