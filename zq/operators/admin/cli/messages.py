"""The messages between the admin listener and a viewer, as a viewer reads and writes them."""

from collections.abc import Mapping

import msgspec

from zq.operators.admin.model import ListName
from zq.operators.admin.wire import AdminJob, ServerStatus, WindowDocument

LISTS = (ListName.IN_FLIGHT, ListName.READY, ListName.SCHEDULED)
"""The lists in the order of their tabs."""


class Heard(msgspec.Struct, frozen=True):
    """Any message from the server. Its `event` decides which fields it has.

    Another version, or the original server, may send events that this one does not know.
    """

    server: ServerStatus
    event: str
    in_flight: WindowDocument | None = None
    ready: WindowDocument | None = None
    scheduled: WindowDocument | None = None
    id: str | None = None
    status: str | None = None
    job: AdminJob | None = None
    list: str | None = None
    matched_position: int | None = None
    window: WindowDocument | None = None
    error: str | None = None

    def windows(self) -> Mapping[ListName, WindowDocument]:
        """The parts of lists in a snapshot."""
        found = {name: getattr(self, name) for name in LISTS}
        return {name: window for name, window in found.items() if window is not None}


decode = msgspec.json.Decoder(Heard).decode
