"""The verbs of producers."""

from types import NoneType

from zq.features.producers.wire import ProducerDocument, ProducersDocument
from zq.model.keys import KeyScope
from zq.verbs import Parameter, Verb

READ, MANAGE = KeyScope.READ, KeyScope.MANAGE

USUAL, MOST = 100, 1000
"""How many producers a page has, and how many it may have."""

_PRODUCER = "/producers/{name}"
_UNKNOWN = {404: "The producer has stored nothing, or was deleted."}

_FROM = Parameter("from", {"type": "string"}, "Producers whose names come after this one.")
_LIMIT = Parameter(
    "limit",
    {"type": "integer", "minimum": 1, "maximum": MOST},
    f"At most so many; {USUAL} as a rule.",
)

LIST = Verb("GET", "/producers", READ, ProducersDocument, query=(_FROM, _LIMIT), whole=True)
GET = Verb("GET", _PRODUCER, READ, ProducerDocument, refusals=_UNKNOWN, whole=True)
DELETE = Verb("DELETE", _PRODUCER, MANAGE, NoneType, refusals=_UNKNOWN, whole=True)
