"""Devices for programs: the verbs of a server about them."""

from typing import Literal

from zq.client.asking import Ask
from zq.client.values import Submission
from zq.features.devices import verbs
from zq.features.devices.model import DeviceReport as DeviceReport
from zq.features.devices.model import FetchBody as FetchBody
from zq.features.devices.model import FetchRefusal as FetchRefusal
from zq.features.devices.model import LaneReport as LaneReport
from zq.features.devices.verbs import DeviceDocument as DeviceDocument
from zq.features.devices.verbs import DevicesDocument as DevicesDocument
from zq.features.devices.verbs import FetchedDocument as FetchedDocument
from zq.features.devices.verbs import FleetDocument as FleetDocument
from zq.features.devices.verbs import HistoryBody as HistoryBody
from zq.features.devices.verbs import HistoryEnd as HistoryEnd
from zq.features.devices.verbs import LackingDocument as LackingDocument
from zq.features.devices.verbs import ReportedDocument as ReportedDocument


class ServerDevices:
    """The devices of one server. A missing one raises a `BackendError`."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask

    async def page(
        self,
        order: Literal["name", "silence", "lag"] = "name",
        skip: int = 0,
        limit: int = 50,
    ) -> DevicesDocument:
        """Up to `limit` devices in this order, without the first `skip`."""
        query = {"order": order, "from": str(skip), "limit": str(limit)}
        return await self._ask(verbs.LIST, query=query)

    async def get(self, name: str) -> DeviceDocument:
        """One device."""
        return await self._ask(verbs.GET, name=name)

    async def report(self, name: str, report: DeviceReport) -> ReportedDocument:
        """Tell the server of this device. Raises a `BackendError` with the code `device_taken`
        if another device has its name."""
        return await self._ask(verbs.PUT, report, name=name)

    async def fetch(self, name: str, body: FetchBody) -> FetchedDocument:
        """Tell what this device has of its jobs, and get the next ones."""
        return await self._ask(verbs.FETCH, body, wait_ms=body.wait_ms, name=name)

    async def append_history(self, name: str, body: HistoryBody) -> HistoryEnd:
        """Send records of a device's history, or ask where to go on."""
        return await self._ask(verbs.HISTORY, body, name=name)

    async def send(self, to: str, job: Submission) -> FleetDocument:
        """Send a job to a device, or to those whose names begin so: `device-*`."""
        return await self._ask(verbs.SEND, {"to": to, "job": job})

    async def lacking(self, group: str) -> LackingDocument:
        """The devices that do not have their job of a group."""
        return await self._ask(verbs.LACKING, group=group)

    async def forget(self, name: str) -> None:
        """Forget a device: another one may have its name."""
        await self._ask(verbs.DELETE, name=name)


def history_path(name: str) -> str:
    """Where a device sends its history, for a request with a body that is compressed."""
    return verbs.HISTORY.at({"name": name})
