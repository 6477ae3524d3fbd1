"""The parameters and answers of the routes about targets of queues."""

import msgspec

from zq.http.api.description.operation import Operation
from zq.wire.counts import Deleted


class AddedJobs(msgspec.Struct):
    """How many jobs a queue got."""

    added: int


_TARGET = {409: "It is a target already, or would have targets itself."}
_NO_TARGET = {404: "There is no such target."}

OPERATIONS: dict[tuple[str, str], Operation] = {
    ("PUT", "/queues/{queue}/targets/{target}"): Operation({201: AddedJobs}, refusals=_TARGET),
    ("DELETE", "/queues/{queue}/targets/{target}"): Operation({200: Deleted}, refusals=_NO_TARGET),
}
