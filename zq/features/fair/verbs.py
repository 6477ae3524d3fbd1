"""The verbs about the fair keys of a queue."""

from types import NoneType

from zq.features.fair.model import FairLimit, FairOrder
from zq.features.fair.wire import FairKeyDocument, FairKeysDocument
from zq.model.keys import KeyScope
from zq.verbs.parameters import FIFTY, WHOLE, choices
from zq.verbs.verb import Parameter, Verb

READ, MANAGE = KeyScope.READ, KeyScope.MANAGE

USUAL, MOST = 50, 500
"""How many keys a page has, and how many it may have."""

MOST_SKIPPED = 1_000_000

_KEY = "/queues/{queue}/fair/{key}"

_ORDER = Parameter(
    "order",
    choices(FairOrder),
    "`share`: the next ones first, as they are furthest behind their share. `wait`: those whose"
    " first job waits for the longest time. `depth`: those with most waiting jobs.",
)
_FROM = Parameter("from", WHOLE, "The `next` of the page before: leave out so many keys.")

LIST = Verb("GET", "/queues/{queue}/fair", READ, FairKeysDocument, query=(_ORDER, _FROM, FIFTY))
GET = Verb(
    "GET",
    _KEY,
    READ,
    FairKeyDocument,
    refusals={404: "The key has no unfinished jobs, and nothing is set for it."},
)
PUT = Verb("PUT", _KEY, MANAGE, FairLimit, FairLimit)
DELETE = Verb("DELETE", _KEY, MANAGE, NoneType, refusals={404: "Nothing is set for the key."})
