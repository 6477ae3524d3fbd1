"""A client of the operators' page: its live views, how current they are, and its API."""

import asyncio
import re
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import quote

import aiohttp
import msgspec

from zq.client.errors import BackendError, Unavailable
from zq.client.http.address import Address
from zq.client.http.transport import reason_of

PAUSE_S = 1.0
SILENCE_S = 10.0
"""The silence in seconds after which a server is gone: it sends a comment every two seconds."""

STALE_S = 5.0
"""The age in seconds from which shown data is stale: a server says something every two seconds."""

LONGEST_LINE = 8 << 20
_AGE = re.compile(rb": (\d{1,12}) ms old")
"""The comment in a live view that tells how old what it has shown is."""

_FAILURES = (aiohttp.ClientError, TimeoutError, OSError)

Document = dict[str, Any]


def merged(target: Any, patch: Any) -> Any:
    """A document after a merge patch (RFC 7396)."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = merged(result.get(name), value)
    return result


class Freshness:
    """One source of news: the connection for lists, or a live view of the operators' page."""

    def __init__(self) -> None:
        self.heard_at: float | None = None
        """The monotonic time of the last word from the server."""
        self.trouble = "connecting"
        """Why there are no news now. Empty while the connection stands."""

    @property
    def age_s(self) -> float | None:
        """How old what is shown is; None if nothing has been shown yet."""
        return None if self.heard_at is None else time.monotonic() - self.heard_at

    @property
    def is_live(self) -> bool:
        """True if what is shown is current."""
        age = self.age_s
        return not self.trouble and age is not None and age < STALE_S

    def hear(self, age_ms: int = 0) -> None:
        """Note a word from the server, which says how old what it has shown is."""
        self.heard_at = time.monotonic() - age_ms / 1000
        self.trouble = ""

    def lose(self, reason: str) -> None:
        """Note that the connection is lost."""
        self.trouble = reason


class PageClient:
    """Requests to the page's part of the admin listener."""

    def __init__(self, address: Address) -> None:
        self._address = address

    async def ask(self, method: str, path: str, body: Any = None) -> Any:
        """An answer of the API. Raises `BackendError`, or `Unavailable` if no server answers."""
        async with self._request(method, f"api/{path}", json=body) as answer:
            content = await answer.read()
        return msgspec.json.decode(content) if content else None

    async def snapshot(self, view: dict[str, str]) -> tuple[Document, int]:
        """A view as it is now, and the server's time."""
        async with self._request("GET", "look", params=view) as answer:
            frame = msgspec.json.decode(await answer.read())
        return frame["full"], frame["at"]

    async def why(self, job_id: str) -> str:
        """Why a job does not run, the strongest reason first."""
        found = await self.ask("GET", f"jobs/{quote(job_id, safe='')}/why")
        return "; ".join(reason["text"] for reason in found["reasons"])

    async def exists(self) -> bool:
        """True if the server has the page, here and for this key."""
        try:
            async with self._request("GET", "live", params={"topic": "pulse"}):
                return True
        except BackendError:
            return False

    async def watch(
        self, view: dict[str, str], show: Callable[[Document, int], None], source: Freshness
    ) -> None:
        """Show a view as it changes until cancelled, and note in `source` how current it is.

        It is opened again if it breaks. What is shown last stays until the server answers again.
        """
        while True:
            try:
                await self._read(view, show, source)
                source.lose("it has ended the connection")
            except BackendError as error:
                source.lose(error.message)
            await asyncio.sleep(PAUSE_S)

    async def _read(
        self, view: dict[str, str], show: Callable[[Document, int], None], source: Freshness
    ) -> None:
        document: Document = {}
        async with self._request("GET", "live", params=view) as answer:
            async for line in answer.content:
                if aged := _AGE.match(line):
                    source.hear(int(aged[1]))
                elif line.startswith(b"data: "):
                    source.hear()
                    frame = msgspec.json.decode(line[6:])
                    change = frame.get("patch", {})
                    document = frame["full"] if "full" in frame else merged(document, change)
                    show(document, frame["at"])

    @asynccontextmanager
    async def _request(
        self, method: str, path: str, **given: Any
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        address = self._address
        tls = address.tls.context() if address.parts.scheme == "https" else True
        url = f"{address.url}/ui/{path}"
        try:
            async with (
                aiohttp.ClientSession(
                    connector=aiohttp.TCPConnector(ssl=tls),
                    headers=address.headers(),
                    timeout=aiohttp.ClientTimeout(total=None, sock_read=SILENCE_S),
                    read_bufsize=LONGEST_LINE,
                ) as session,
                session.request(method, url, **given) as answer,
            ):
                if not answer.ok:
                    raise BackendError(await _reason(answer), answer.status)
                yield answer
        except _FAILURES as error:
            raise Unavailable(f"lost {address.url}: {reason_of(address.url, error)}") from error


async def _reason(answer: aiohttp.ClientResponse) -> str:
    try:
        return str(msgspec.json.decode(await answer.read())["error"])
    except (msgspec.MsgspecError, KeyError, TypeError):
        return f"status {answer.status}"
