"""The parameters and answers of the routes about schedules."""

import msgspec

from zq.features.crons.wire import (
    CronEntryBody,
    CronEntryDocument,
    CronGroupBody,
    CronGroupDocument,
    CronGroupPatchBody,
    CronPausedBody,
)
from zq.http.api.description.operation import UNBUILT, Operation
from zq.http.api.description.shapes import Deleted


class CronNames(msgspec.Struct):
    """The names of the groups."""

    crons: list[str]


_NO_GROUP = {404: "There is no such group."}
_NO_ENTRY = {404: "There is no such group or entry."}

OPERATIONS: dict[tuple[str, str], Operation] = {
    ("GET", "/crons"): Operation({200: CronNames}),
    ("DELETE", "/crons"): Operation({200: Deleted}),
    ("GET", "/crons/{group}"): Operation({200: CronGroupDocument}, refusals=_NO_GROUP),
    ("PUT", "/crons/{group}"): Operation({200: CronGroupDocument}, CronGroupBody, refusals=UNBUILT),
    ("PATCH", "/crons/{group}"): Operation(
        {200: CronGroupDocument}, CronGroupPatchBody, refusals=_NO_GROUP
    ),
    ("DELETE", "/crons/{group}"): Operation({204: None}, refusals=_NO_GROUP),
    ("POST", "/crons/{group}/entries"): Operation(
        {201: CronEntryDocument},
        CronEntryBody,
        refusals={409: "An entry with this name exists already.", **UNBUILT},
    ),
    ("GET", "/crons/{group}/entries/{entry}"): Operation(
        {200: CronEntryDocument}, refusals=_NO_ENTRY
    ),
    ("PUT", "/crons/{group}/entries/{entry}"): Operation(
        {200: CronEntryDocument}, CronEntryBody, refusals=UNBUILT
    ),
    ("PATCH", "/crons/{group}/entries/{entry}"): Operation(
        {200: CronEntryDocument}, CronPausedBody, refusals=_NO_ENTRY
    ),
    ("DELETE", "/crons/{group}/entries/{entry}"): Operation({204: None}, refusals=_NO_ENTRY),
}
