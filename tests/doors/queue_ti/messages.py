"""A client of queue-ti's API, and shorthands for what most of its cases begin with."""

from typing import Any

from conformance.client import Client, Reply

Doc = dict[str, Any]


class Messages:
    """Requests under `/api` of a client that also speaks the native API."""

    def __init__(self, client: Client) -> None:
        self.native = client
        self.site = client.site

    async def post(self, target: str, doc: Any) -> Reply:
        return await self.native.post(f"/api{target}", doc)

    async def get(self, target: str, **params: Any) -> Reply:
        return await self.native.get(f"/api{target}", **params)

    async def send(self, method: str, target: str, **given: Any) -> Reply:
        return await self.native.send(method, f"/api{target}", **given)

    async def enqueue(self, topic: str, payload: str = "x", **fields: Any) -> str:
        reply = await self.post("/messages", {"topic": topic, "payload": payload, **fields})
        assert reply.status == 201, reply.body
        id: str = reply.doc["id"]
        return id

    async def dequeue(self, topic: str, count: int = 1, **fields: Any) -> list[Doc]:
        sent = {"topic": topic, "count": count, **fields}
        reply = await self.post("/messages/dequeue", sent)
        assert reply.status == 200, reply.body
        found: list[Doc] = reply.doc["messages"]
        return found

    async def ack(self, id: str) -> int:
        return (await self.post(f"/messages/{id}/ack", {})).status

    async def nack(self, id: str, error: str = "boom") -> int:
        return (await self.post(f"/messages/{id}/nack", {"error": error})).status

    async def fail(self, topic: str, times: int = 1) -> str:
        """Take the next message of a topic and nack it, so many times; its id."""
        for _ in range(times):
            (taken,) = await self.dequeue(topic)
            assert await self.nack(taken["id"]) == 204
        id: str = taken["id"]
        return id

    async def list(self, topic: str) -> list[Doc]:
        reply = await self.get("/messages", topic=topic)
        assert reply.status == 200, reply.body
        items: list[Doc] = reply.doc["items"]
        assert reply.doc["total"] == len(items)
        return items

    async def one(self, topic: str) -> Doc:
        (item,) = await self.list(topic)
        return item

    async def configure(self, topic: str, **overrides: Any) -> Doc:
        reply = await self.native.call("PUT", f"/api/topic-configs/{topic}", overrides)
        assert reply.status == 200, reply.body
        doc: Doc = reply.doc
        return doc

    async def run(self, reaper: str) -> Doc:
        reply = await self.send("POST", f"/admin/{reaper}-reaper/run")
        assert reply.status == 200, reply.body
        doc: Doc = reply.doc
        return doc
