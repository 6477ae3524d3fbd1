"""A stream of server-sent events as a test reads it."""

import json
from typing import Any

from conformance.client import Client
from conformance.streams import FrameStream

MEDIA_TYPE = "text/event-stream; charset=utf-8"


def cut_event(buffer: bytearray) -> tuple[bool, dict[str, Any] | None]:
    """The fields of one event; a comment has the name of nothing."""
    end = buffer.find(b"\n\n")
    if end < 0:
        return False, None
    fields: dict[str, Any] = {}
    for line in bytes(buffer[:end]).decode().split("\n"):
        name, _, value = line.partition(":")
        fields[name] = value.strip()
    del buffer[: end + 2]
    if "data" in fields:
        fields["data"] = json.loads(fields["data"])
    return True, fields


class Frames(FrameStream):
    """An open stream. Signs of life are passed over unless they are asked for."""

    @classmethod
    async def open(cls, client: Client, target: str, **headers: str) -> "Frames":
        told = {"accept": "text/event-stream"} | headers
        return await client.open(cls, target, told, {MEDIA_TYPE: cut_event})

    async def event(self) -> tuple[str, dict[str, Any], str]:
        """The next event: its name, its data and its id."""
        while True:
            frame = await self.frame()
            if frame is not None and "event" in frame:
                return frame["event"], frame["data"], frame.get("id", "")

    async def expect(self, name: str, **fields: Any) -> tuple[dict[str, Any], str]:
        """The next event, which has this name and at least these fields."""
        found, data, id = await self.event()
        assert found == name, (found, data)
        assert {**data, **fields} == data
        return data, id
