"""The parameters and answers of the routes about what operators have done."""

from zq.features.audit.wire import ActionsDocument
from zq.http.api.description.operation import Operation
from zq.verbs.parameters import HUNDRED, WHOLE
from zq.verbs.verb import Parameter

_CHOOSING = (
    Parameter("who", {"type": "string", "minLength": 1}, "Only those of this actor or address."),
    Parameter("verb", {"type": "string", "minLength": 1}, "Only those with this `verb`."),
    Parameter("queue", {"type": "string", "minLength": 1}, "Only those that name this queue."),
    Parameter("since", WHOLE, "Only those at this time or later, in milliseconds."),
    Parameter("until", WHOLE, "Only those at this time or earlier."),
)

OPERATIONS: dict[tuple[str, str], Operation] = {
    ("GET", "/audit"): Operation(
        {200: ActionsDocument},
        parameters=(
            Parameter("before", WHOLE, "Only actions before this `seq`."),
            HUNDRED,
            *_CHOOSING,
        ),
    ),
}
