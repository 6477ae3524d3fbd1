"""The streams of a server over HTTP: deliveries of jobs, and events."""

from collections.abc import Sequence

import msgspec

from zq.client.errors import Unavailable
from zq.client.formats import Codec
from zq.client.http.transport import Bytes
from zq.client.values import Delivery, JobEvent, Notice

_event = msgspec.json.Decoder(JobEvent)


class HttpTakeStream:
    """The take stream over HTTP."""

    def __init__(self, body: Bytes, codec: Codec, url: str) -> None:
        self._body = body
        self._codec = codec
        self._url = url
        self._rest = b""

    async def deliveries(self) -> Sequence[Delivery | Notice]:
        """Wait for jobs."""
        while True:
            chunk = await self._body.read()
            if not chunk:
                raise Unavailable(f"{self._url} ended the stream")
            try:
                found, self._rest = self._codec.cut(self._rest + chunk)
            except msgspec.MsgspecError as error:
                raise Unavailable(
                    f"{self._url} sends something other than jobs: {error}"
                ) from error
            if found:
                return found

    async def close(self) -> None:
        """Close the connection. Its unsettled jobs are returned."""
        await self._body.close()


class HttpEventStream:
    """Server-sent events, as in https://html.spec.whatwg.org/multipage/server-sent-events.html, in
    the form that a zq server sends: the fields `id`, `event` and `data` have one line each.
    """

    def __init__(self, body: Bytes, url: str, last_id: str | None) -> None:
        self.last_id = last_id
        self._body = body
        self._url = url
        self._rest = b""

    async def events(self) -> Sequence[JobEvent]:
        """Wait for events, or for a heartbeat, which brings a new place."""
        chunk = await self._body.read()
        if not chunk:
            raise Unavailable(f"{self._url} ended the stream")
        *blocks, self._rest = (self._rest + chunk).split(b"\n\n")
        found: list[JobEvent] = []
        try:
            for block in blocks:
                fields = dict(line.split(b": ", 1) for line in block.split(b"\n"))
                self.last_id = fields[b"id"].decode()
                if b"data" in fields:
                    event = _event.decode(fields[b"data"])
                    found.append(msgspec.structs.replace(event, event_id=self.last_id))
        except (ValueError, KeyError, msgspec.MsgspecError) as error:
            raise Unavailable(f"{self._url} sends something other than events: {error}") from error
        return found

    async def close(self) -> None:
        """Close the connection."""
        await self._body.close()
