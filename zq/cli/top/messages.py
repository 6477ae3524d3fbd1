"""The messages between the admin listener and a viewer, as JSON over a WebSocket."""

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

ListName = Literal["in_flight", "ready", "scheduled"]
Direction = Literal["forward", "backward"]

LISTS: tuple[ListName, ...] = ("in_flight", "ready", "scheduled")


class Item(msgspec.Struct, frozen=True):
    """A job in a list. The fields after `failed_at` are present only at the detail level."""

    id: str
    queue: str
    job_type: str
    priority: int
    ready_at: int
    attempts: int
    dequeued_at: int | None = None
    failed_at: int | None = None
    payload: msgspec.Raw = msgspec.Raw()
    retry_limit: int | None = None
    backoff: Mapping[str, Any] | None = None
    retention: Mapping[str, Any] | None = None
    unique_key: str | None = None
    unique_while: str | None = None
    waits: bool = False
    """It is ready, but it waits for a budget or for its group. The server's lists leave it out."""

    def facts(self) -> dict[str, Any]:
        """The fields that have a value."""
        fields = msgspec.structs.asdict(self)
        del fields["waits"]
        if not bytes(self.payload):
            del fields["payload"]
        return {name: value for name, value in fields.items() if value is not None}


class Window(msgspec.Struct, frozen=True):
    """A part of a list of `total` jobs. `items` begin at `first_position`, counted from 0."""

    items: list[Item] = []
    first_position: int = 0
    total: int = 0


class ServerState(msgspec.Struct, frozen=True):
    """The server's state, which every message has."""

    version: str
    uptime_ms: int
    total_ready: int
    total_in_flight: int
    total_scheduled: int
    subscription_limit: int | None = None

    def total(self, name: ListName) -> int:
        """How many jobs a list has."""
        totals = {
            "in_flight": self.total_in_flight,
            "ready": self.total_ready,
            "scheduled": self.total_scheduled,
        }
        return totals[name]


class Heard(msgspec.Struct, frozen=True):
    """A message from the server. Its `event` decides which fields it has."""

    server: ServerState
    event: str
    in_flight: Window | None = None
    ready: Window | None = None
    scheduled: Window | None = None
    id: str | None = None
    status: str | None = None
    job: Item | None = None
    list: str | None = None
    matched_position: int | None = None
    window: Window | None = None
    message: str | None = None

    def windows(self) -> Mapping[ListName, Window]:
        """The parts of lists in a snapshot."""
        found = {"in_flight": self.in_flight, "ready": self.ready, "scheduled": self.scheduled}
        return {name: window for name in LISTS if (window := found[name]) is not None}


Said = dict[str, Any]
"""A message from a viewer."""

HEAD: Said = {"kind": "head"}
TAIL: Said = {"kind": "tail"}

decode = msgspec.json.Decoder(Heard).decode


def at_offset(offset: int) -> Said:
    """The anchor of a window that begins at a position."""
    return {"kind": "offset", "offset": offset}


def around(job_id: str) -> Said:
    """The anchor of a window with a job in its middle; the head if the job has left the list."""
    return {"kind": "around", "id": job_id, "fallback": "head"}


def subscribe(name: ListName, anchor: Said, limit: int) -> Said:
    """Ask for a part of a list, and its changes from now on."""
    return {"type": "subscribe", "list": name, "anchor": anchor, "limit": limit}


def set_detail_level(detail: bool) -> Said:
    """Ask for jobs with all their fields, or with the short ones only."""
    return {"type": "set_detail_level", "detail": detail}


def delete_job(job_id: str) -> Said:
    """Ask for a job to be deleted."""
    return {"type": "delete_job", "id": job_id}


def find(
    name: ListName,
    after: str | None,
    direction: Direction,
    queues: list[str],
    types: list[str],
    limit: int,
) -> Said:
    """Ask for the next job whose queue and type contain one of these texts each."""
    edge = "start" if direction == "forward" else "end"
    anchor = {"kind": edge} if after is None else {"kind": "job_id", "id": after}
    query = {"queues": queues, "types": types}
    return {
        "type": "find",
        "list": name,
        "anchor": anchor,
        "direction": direction,
        "query": query,
        "limit": limit,
    }
