"""A backlog that is stored before the measured time, on a server that is too busy at first."""

import asyncio
from typing import Any

import pytest

from bench import http1
from bench.actors import BULK, bulk_requests
from bench.http1 import BLANK_LINE, CONTENT_LENGTH
from bench.load import Session, fill

REFUSED, STORED = b"503 Service Unavailable", b"201 Created"


async def test_what_a_busy_server_refuses_is_sent_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http1, "AGAIN_S", 0.01)
    answers: list[bytes] = []
    handlers: list[Any] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while head := await reader.readuntil(BLANK_LINE):
            length = CONTENT_LENGTH.search(head)
            assert length is not None
            await reader.readexactly(int(length[1]))
            answers.append(REFUSED if len(answers) < 6 else STORED)
            writer.write(b"HTTP/1.1 " + answers[-1] + b"\r\nContent-Length: 2\r\n\r\n{}")

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        handlers.append(asyncio.current_task())
        try:
            await answer(reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        session = Session(server.sockets[0].getsockname()[1])
        try:
            await fill(session, bulk_requests(queues=1), 5 * BULK)
        finally:
            session.close()
        await asyncio.gather(*handlers)
    assert answers.count(STORED) == 5
