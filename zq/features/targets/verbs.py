"""The verbs about targets of queues. A slash in a name is written `%2F` in the path."""

import msgspec

from zq.model.keys import KeyScope
from zq.verbs.verb import Deleted, Verb


class AddedJobs(msgspec.Struct):
    """How many jobs a queue got."""

    added: int


_TARGET = "/queues/{queue}/targets/{target}"
_REFUSED = {
    409: "It is a target already, or would have targets itself.",
    429: "More jobs wait than its `max_depth` allows.",
}
_NO_TARGET = {404: "There is no such target."}

ADD = Verb("PUT", _TARGET, KeyScope.MANAGE, AddedJobs, refusals=_REFUSED, created=True)
REMOVE = Verb("DELETE", _TARGET, KeyScope.MANAGE, Deleted, refusals=_NO_TARGET)
