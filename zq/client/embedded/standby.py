"""Starts an embedded engine, or stands by while another process has its directory."""

import asyncio
import logging
import time

from zq.client.embedded.home import DirectoryTaken, Home

log = logging.getLogger("zq.embedded")

LOOK_EVERY_S = 0.2
"""How often a standby checks whether the directory is free.

The kernel frees the directory however its owner ends, so no lock has to expire first.
"""


async def start(home: Home, *, blocks: bool) -> None:
    """Start the engine. A standby waits until it can. With `blocks` the thread is blocked."""
    waits = False
    while True:
        try:
            if blocks:
                home.services()
            else:
                # Starting the engine may take a while.
                await asyncio.to_thread(home.services)
        except DirectoryTaken as taken:
            if not home.standby:
                raise
            if not waits:
                log.info("standing by: %s", taken)
            waits = True
        else:
            if waits:
                log.info("%s is free: going on with its jobs", home.directory)
            return
        if blocks:
            time.sleep(LOOK_EVERY_S)  # noqa: ASYNC251 - there is no event loop to hold up
        else:
            await asyncio.sleep(LOOK_EVERY_S)
