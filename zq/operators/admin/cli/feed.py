"""The connection of a viewer to the admin listener. It is opened again if it breaks."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import aiohttp
import msgspec

from zq.client.errors import BackendError, Unavailable
from zq.client.http.address import Address
from zq.client.http.transport import reason_of
from zq.operators.admin.cli.job_lists import Heard, decode
from zq.operators.admin.wire import ViewerMessage

SILENCE_S = 10.0
"""The silence in seconds after which a server is gone: it sends a heartbeat every two seconds."""

FIRST_PAUSE_S = 0.25
LONGEST_PAUSE_S = 5.0

LARGEST_MESSAGE = 64 << 20
_FAILURES = (aiohttp.ClientError, TimeoutError, OSError)
_ENDS = (aiohttp.WSMsgType.CLOSE, aiohttp.WSMsgType.CLOSING, aiohttp.WSMsgType.CLOSED)


class Link:
    """One connection."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse, url: str) -> None:
        self._socket = socket
        self._url = url

    async def say(self, message: ViewerMessage) -> None:
        """Send a message. Raises `Unavailable`."""
        try:
            await self._socket.send_str(msgspec.json.encode(message).decode())
        except _FAILURES as error:
            raise self._lost(reason_of(self._url, error)) from error

    async def hear(self) -> Heard:
        """Return the next message. Raises `Unavailable`, or `BackendError` for anything else."""
        try:
            message = await self._socket.receive(SILENCE_S)
        except TimeoutError as error:
            raise self._lost(f"it has said nothing for {SILENCE_S:.0f} s") from error
        except _FAILURES as error:
            raise self._lost(reason_of(self._url, error)) from error
        if message.type in _ENDS:
            raise self._lost(message.extra or "it has ended the connection")
        if message.type is aiohttp.WSMsgType.ERROR:
            raise self._lost(str(message.data))
        try:
            return decode(message.data)
        except msgspec.MsgspecError as error:
            raise BackendError(f"{self._url} does not speak as zq does: {error}") from error

    def _lost(self, reason: str) -> Unavailable:
        return Unavailable(f"lost {self._url}: {reason}")


@asynccontextmanager
async def link(address: Address) -> AsyncIterator[Link]:
    """Connect. Raises `Unavailable` if no server answers, `BackendError` if it refuses."""
    tls = address.tls.context() if address.parts.scheme == "https" else True
    async with aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(ssl=tls), headers=address.headers()
    ) as session:
        try:
            async with asyncio.timeout(SILENCE_S):
                socket = await session.ws_connect(
                    f"{address.url}/events", max_msg_size=LARGEST_MESSAGE, compress=15
                )
        except aiohttp.WSServerHandshakeError as error:
            raise _refusal(address.url, error.status) from error
        except _FAILURES as error:
            reason = reason_of(address.url, error)
            raise Unavailable(f"no admin listener answers at {address.url}: {reason}") from error
        try:
            yield Link(socket, address.url)
        finally:
            await socket.close()


def _refusal(url: str, status: int) -> BackendError:
    elsewhere = "this is not an admin listener; its port is 8901 unless --admin-port names another"
    remedies = {
        200: elsewhere,
        401: "it requires an access key (give it with --token or ZQ_TOKEN)",
        403: "the access key lacks the scope for this",
        404: elsewhere,
    }
    return BackendError(f"{url} refuses: {remedies.get(status, f'status {status}')}", status)


class Feed:
    """Keeps a connection open, and passes messages on."""

    def __init__(
        self,
        address: Address,
        greet: Callable[[], list[ViewerMessage]],
        hear: Callable[[Heard], None],
        lose: Callable[[str], None],
    ) -> None:
        """`greet` returns the first messages of a connection. `lose` gets the reason of a loss."""
        self._address = address
        self._greet = greet
        self._hear = hear
        self._lose = lose
        self._to_say = asyncio.Queue[ViewerMessage]()

    def say(self, message: ViewerMessage) -> None:
        """Send a message, unless the connection is lost."""
        self._to_say.put_nowait(message)

    async def run(self) -> None:
        """Stay connected until cancelled."""
        pause = FIRST_PAUSE_S
        while True:
            try:
                async with link(self._address) as connection:
                    pause = FIRST_PAUSE_S
                    await self._talk(connection)
            except BackendError as error:
                self._lose(error.message)
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE_S)

    async def _talk(self, connection: Link) -> None:
        # Messages for the previous connection belong to a state that is gone.
        self._to_say = asyncio.Queue()
        for message in self._greet():
            self.say(message)
        saying = asyncio.create_task(self._say_all(connection))
        try:
            while True:
                self._hear(await connection.hear())
        finally:
            saying.cancel()

    async def _say_all(self, connection: Link) -> None:
        while True:
            message = await self._to_say.get()
            try:
                await connection.say(message)
            except Unavailable:
                return  # the reader finds the same error
