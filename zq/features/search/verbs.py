"""The verbs that complete what somebody types."""

from zq.features.search.wire import NearQueuesDocument, SuggestionsDocument
from zq.model.keys import KeyScope
from zq.verbs.parameters import TEXT
from zq.verbs.verb import Parameter, Verb

LONGEST = 200

SUGGEST = Verb(
    "GET",
    "/suggest",
    KeyScope.READ,
    SuggestionsDocument,
    query=(
        Parameter(
            "field",
            {"type": "string", "enum": ["queue", "type", "cause", "status", "payload"]},
            "What is completed.",
            required=True,
        ),
        Parameter("q", {"type": "string", "maxLength": LONGEST}, "What was typed."),
        Parameter("queue", TEXT, "For jobs of this queue."),
    ),
)
NEAR = Verb("GET", "/queues/{queue}/near", KeyScope.READ, NearQueuesDocument)
