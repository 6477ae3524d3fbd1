"""A client of topics, and shorthands for what most of its cases begin with."""

from typing import Any

from conformance.client import Client, Reply

Doc = dict[str, Any]


class Records:
    """Requests under `/v0/topics` of a client that also speaks the native API."""

    def __init__(self, client: Client) -> None:
        self.native = client
        self.site = client.site

    async def post(self, target: str, doc: Any) -> Reply:
        return await self.native.post(f"/v0/topics/{target}", doc)

    async def get(self, target: str, **params: Any) -> Reply:
        return await self.native.get(f"/v0/topics{target}", **params)

    async def form(self, target: str, text: str) -> Reply:
        """A body as plain `curl -d` sends it."""
        headers = {"content-type": "application/x-www-form-urlencoded"}
        return await self.native.send("POST", f"/v0/topics/{target}", text.encode(), headers)

    async def put(self, topic: str, **config: Any) -> Doc:
        return told(await self.native.call("PUT", f"/v0/topics/{topic}", config), (200, 201))

    async def append(self, topic: str, *data: Any, **fields: Any) -> Doc:
        records = [{"data": each} for each in data]
        return told(await self.post(topic, {"records": records, **fields}), (200, 201))

    async def diff(self, topic: str, from_seq: int = 0, **fields: Any) -> Doc:
        return told(await self.post(f"{topic}/diff", {"from_seq": from_seq, **fields}))

    async def seqs(self, topic: str, from_seq: int = 0, **fields: Any) -> list[int]:
        found = await self.diff(topic, from_seq, **fields)
        return [record["$seq"] for record in found["records"]]

    async def delete(self, topic: str, **fields: Any) -> Doc:
        return told(await self.post(f"{topic}/delete", fields))


def told(reply: Reply, statuses: tuple[int, ...] = (200,)) -> Doc:
    """The document of an answer that is no error."""
    assert reply.status in statuses, reply.body
    doc: Doc = reply.doc
    assert doc["performance"]["server_total_ms"] >= 0
    return doc


def refused(reply: Reply) -> tuple[int, str]:
    """The status and the code of an answer that is an error."""
    assert list(reply.doc) == ["error"], reply.body
    error = reply.doc["error"]
    assert error.keys() <= {"code", "message", "detail"}
    assert error["message"]
    return reply.status, error["code"]
