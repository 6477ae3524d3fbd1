"""A program that forks while its event loop has an open connection. Its argument is the server.

Child and parent go on enqueueing. It prints what each of the three enqueues came to.
"""

import asyncio
import gc
import os
import sys

import zq


async def enqueue(app: zq.App, id: str) -> None:
    outcome = await app.queue("q").enqueue(id, 1)
    print(outcome.status, flush=True)


async def main(url: str) -> None:
    app = zq.App(url)
    await enqueue(app, "parent")
    child = os.fork()
    if child == 0:
        # What a child does first, as multiprocessing does: forget the parent's loop.
        asyncio.events._set_running_loop(None)
        asyncio.run(enqueue(app, "child"))
        gc.collect()
        os._exit(0)
    await asyncio.to_thread(os.waitpid, child, 0)
    async with asyncio.timeout(60):
        await enqueue(app, "parent")
    await app.close()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
