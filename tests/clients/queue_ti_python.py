"""What queue-ti's own client for Python does with a server; it prints what it has seen.

It is a program of its own, for two modules with the messages of one service cannot be in one
process.
"""

import asyncio
import json
import sys

from queueti import BatchOptions, ConnectOptions, ConsumerOptions, PublishOptions, connect
from queueti._message import Message


async def main(address: str, token: str) -> None:
    client = await connect(address, ConnectOptions(token=token, insecure=True))
    sent = PublishOptions(metadata={"n": "1"})
    ids = [await client.producer().publish("work", payload, sent) for payload in (b"ok", b"bad")]
    seen: list[tuple[str, str, int, dict[str, str]]] = []
    enough = asyncio.Event()

    async def handle(message: Message) -> None:
        text = message.payload.decode()
        seen.append((message.id, text, message.retry_count, message.metadata))
        if len(seen) == 3:
            enough.set()
        if text == "bad" and message.retry_count == 0:
            raise ValueError("no stock")

    consumer = client.consumer("work", ConsumerOptions(2, visibility_timeout_seconds=60))
    consuming = asyncio.create_task(consumer.consume(handle))
    await enough.wait()

    last = asyncio.Event()

    async def handle_batch(batch: list[Message]) -> None:
        await batch[0].nack("later")
        last.set()

    await client.producer().publish("batches", b"b")
    batches = client.consumer("batches")
    taking = asyncio.create_task(batches.consume_batch(BatchOptions(10), handle_batch))
    await last.wait()
    for task in (consuming, taking):
        task.cancel()
        await task
    await client.close()
    print(json.dumps({"ids": ids, "seen": seen}))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
