"""Reading /metrics."""

import asyncio
from collections.abc import Callable

from prometheus_client.parser import text_string_to_metric_families

from .raw import RawConnection
from .streams import PATIENCE_S, pause


class Metrics:
    """One scrape. `metrics["name", "label value", …]` is a number, 0 where there is none."""

    def __init__(self, text: str) -> None:
        self.families = {family.name: family for family in text_string_to_metric_families(text)}
        self.values = {
            (sample.name, *sample.labels.values()): sample.value
            for family in self.families.values()
            for sample in family.samples
        }

    def __getitem__(self, key: str | tuple[str, ...]) -> float:
        return self.values.get((key,) if isinstance(key, str) else key, 0.0)

    def labels(self, name: str, label: str) -> set[str]:
        """The values of a label."""
        return {sample.labels[label] for sample in self.families[name].samples}


class Scraper:
    """Scrapes over one connection of its own, as Prometheus does."""

    def __init__(self, connection: RawConnection) -> None:
        self._connection = connection

    async def __call__(self) -> Metrics:
        await self._connection.send(b"GET /metrics HTTP/1.1\r\nHost: q\r\n\r\n")
        reply = await self._connection.reply()
        assert reply.status == 200, reply.body
        return Metrics(reply.body.decode())

    async def until(self, told: Callable[[Metrics], bool]) -> Metrics:
        """Scrape until that is so."""
        async with asyncio.timeout(PATIENCE_S):
            while not told(metrics := await self()):
                await pause()
        return metrics
