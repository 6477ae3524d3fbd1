"""Imports what few servers need, once one does, while its event loop goes on."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module


async def import_aside(*names: str) -> None:
    """Import modules in a thread that ends afterwards. Raises ImportError or OSError."""
    with ThreadPoolExecutor(1, "zq-import") as thread:
        loop = asyncio.get_running_loop()
        for name in names:
            await loop.run_in_executor(thread, import_module, name)
