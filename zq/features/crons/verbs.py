"""The verbs of cron. A slash in a name is written `%2F` in the path."""

from types import NoneType

from zq.features.crons.wire import (
    CronEntryBody,
    CronEntryDocument,
    CronGroupBody,
    CronGroupDocument,
    CronGroupPatchBody,
    CronNames,
    CronPausedBody,
)
from zq.model.keys import KeyScope
from zq.verbs.verb import UNBUILT, Deleted, Verb

READ, MANAGE = KeyScope.READ, KeyScope.MANAGE

_GROUP = "/crons/{group}"
_ENTRIES = f"{_GROUP}/entries"
_ENTRY = f"{_ENTRIES}/{{entry}}"

_NO_GROUP = {404: "There is no such group."}
_NO_ENTRY = {404: "There is no such group or entry."}
_EXISTS = {409: "An entry with this name exists already."}

LIST = Verb("GET", "/crons", READ, CronNames)
CLEAR = Verb("DELETE", "/crons", MANAGE, Deleted)
GET_GROUP = Verb("GET", _GROUP, READ, CronGroupDocument, refusals=_NO_GROUP)
PUT_GROUP = Verb("PUT", _GROUP, MANAGE, CronGroupDocument, CronGroupBody, refusals=UNBUILT)
PATCH_GROUP = Verb(
    "PATCH", _GROUP, MANAGE, CronGroupDocument, CronGroupPatchBody, refusals=_NO_GROUP
)
DELETE_GROUP = Verb("DELETE", _GROUP, MANAGE, NoneType, refusals=_NO_GROUP)
ADD_ENTRY = Verb(
    "POST",
    _ENTRIES,
    MANAGE,
    CronEntryDocument,
    CronEntryBody,
    refusals=_EXISTS | UNBUILT,
    created=True,
)
GET_ENTRY = Verb("GET", _ENTRY, READ, CronEntryDocument, refusals=_NO_ENTRY)
PUT_ENTRY = Verb("PUT", _ENTRY, MANAGE, CronEntryDocument, CronEntryBody, refusals=UNBUILT)
PATCH_ENTRY = Verb("PATCH", _ENTRY, MANAGE, CronEntryDocument, CronPausedBody, refusals=_NO_ENTRY)
DELETE_ENTRY = Verb("DELETE", _ENTRY, MANAGE, NoneType, refusals=_NO_ENTRY)
