"""Request bodies that would hold the event loop are looked at in a process of their own.

A body is light if the loop can read it in a slice (`zq.wire.weight`). Nearly all are. Of a heavy
one, the process counts the values, and checks them or turns them into JSON. What the handlers do
with it then takes a small part of that time.
"""

from typing import Any

from aiohttp import hdrs, web

from zq.engine.aside import AsideLane
from zq.engine.turns import Turns
from zq.http.transport.bodies import Bodies
from zq.wire.codecs import BodyCodec
from zq.wire.pushing import Pushed, heavy_push, is_light_push, pushed_aside, read_push
from zq.wire.weight import CheckedJson, is_light, request_json

MODULES = ("zq.wire.weight", "zq.wire.pushing")
"""The modules whose functions are run aside."""

MEMORY = 512 * 1024 * 1024
"""The address space of the process besides that for the bodies, in bytes."""

BODIES = 8
"""The number of bodies of the largest size for which there is room."""

COPIES = 2
"""The further copies of a heavy body while it is examined: in the pipe and in the process."""


class RequestBodies(Bodies):
    """Reads bodies, and has heavy ones looked at aside."""

    def __init__(self, *limits: Any, aside: AsideLane, turns: Turns, max_values: int) -> None:
        """`limits` are those of `Bodies`. A body has up to `max_values` values."""
        super().__init__(*limits)
        self.aside = aside
        self.turns = turns
        self._max_values = max_values

    async def light(
        self, request: web.BaseRequest, body: bytes, codec: BodyCodec
    ) -> tuple[bytes, BodyCodec]:
        """The body of a request, and its format, as the loop can read it in a slice.

        Raises `TooManyValues`, `InvalidRequest`, and what `AsideLane.run` does.
        """
        if is_light(body, codec.name):
            return body, codec
        with self.holding(len(body) * COPIES):
            made = await self.aside.run(request_json, body, self._max_values, codec.name)
            return made[0] if made else body, CheckedJson(codec.name, strict=codec.strict)

    async def pushed(self, request: web.BaseRequest, body: bytes) -> Pushed | None:
        """The payload for a body that is pushed: see `zq.wire.pushing.read_push`."""
        content_type = request.headers.get(hdrs.CONTENT_TYPE)
        if is_light_push(content_type, body):
            return read_push(content_type, body)
        with self.holding(len(body) * COPIES):
            found = await self.aside.run(heavy_push, body, content_type, self._max_values)
            return pushed_aside(found)
