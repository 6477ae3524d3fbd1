"""The parameters and answers of the routes that complete what somebody types."""

from zq.features.search.wire import NearQueuesDocument, SuggestionsDocument
from zq.http.api.description.operation import Operation
from zq.verbs.parameters import TEXT
from zq.verbs.verb import Parameter

_FIELD = Parameter(
    "field",
    {"type": "string", "enum": ["queue", "type", "cause", "status", "payload"]},
    "What is completed.",
    required=True,
)
_TYPED = Parameter("q", {"type": "string", "maxLength": 200}, "What was typed.")

OPERATIONS: dict[tuple[str, str], Operation] = {
    ("GET", "/suggest"): Operation(
        {200: SuggestionsDocument},
        parameters=(_FIELD, _TYPED, Parameter("queue", TEXT, "For jobs of this queue.")),
    ),
    ("GET", "/queues/{queue}/near"): Operation({200: NearQueuesDocument}),
}
