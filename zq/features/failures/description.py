"""The parameters and answers of the routes about failures and their causes."""

from zq.features.failures.model import FailureRange
from zq.features.failures.service import FailureOrder
from zq.features.failures.wire import FailuresDocument
from zq.http.api.description.operation import Operation
from zq.verbs.parameters import names
from zq.verbs.verb import Parameter

OPERATIONS: dict[tuple[str, str], Operation] = {
    ("GET", "/failures"): Operation(
        {200: FailuresDocument},
        parameters=(
            Parameter("queue", names(), "Of these queues only."),
            Parameter("range", {"type": "string", "enum": list(FailureRange)}, "How far back."),
            Parameter("order", {"type": "string", "enum": list(FailureOrder)}, "Which come first."),
        ),
    ),
}
