"""Shorthands for what workers of one queue topic ask."""

from typing import Any

from .frames import Frames
from .records import Doc, Records, told


class Queue:
    """Requests about one queue topic."""

    def __init__(self, records: Records, name: str) -> None:
        self.records, self.name = records, name

    async def post(self, verb: str, **fields: Any) -> Doc:
        return told(await self.records.post(f"{self.name}/{verb}", fields))

    async def claim(self, most: int = 1, node: str = "w1", **fields: Any) -> list[Doc]:
        told = await self.post("claim", node=node, max=most, **fields)
        assert told["count"] == len(told["claimed"])
        claimed: list[Doc] = told["claimed"]
        return claimed

    async def settle(self, verb: str, *seqs: int, node: str = "w1", **fields: Any) -> Doc:
        return await self.post(verb, node=node, seqs=list(seqs), **fields)

    async def counts(self) -> Doc:
        counts: Doc = told(await self.records.get(f"/{self.name}"))["queue"]
        return counts


async def work(queue: Queue, **query: object) -> Frames:
    text = "&".join(f"{name}={value}" for name, value in query.items())
    return await Frames.open(queue.records.native, f"/v0/topics/{queue.name}/work?{text}")
