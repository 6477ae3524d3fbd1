"""The parameters and answers of the routes about what happened over time."""

from zq.features.trends.model import TimeMark
from zq.features.trends.service import TrendRange
from zq.features.trends.service_types import TypeRange, TypeSort
from zq.features.trends.wire import NewMark, TrendsDocument
from zq.features.trends.wire_types import TypesDocument
from zq.http.api.description.operation import Operation
from zq.verbs.parameters import TEXT
from zq.verbs.verb import Parameter

OPERATIONS: dict[tuple[str, str], Operation] = {
    ("GET", "/stats/history"): Operation(
        {200: TrendsDocument},
        parameters=(
            Parameter("queue", TEXT, "Of this queue alone; otherwise of all together."),
            Parameter("range", {"type": "string", "enum": list(TrendRange)}, "How far back."),
        ),
    ),
    ("GET", "/stats/types"): Operation(
        {200: TypesDocument},
        parameters=(
            Parameter("queue", TEXT, "Of this queue alone; otherwise of all."),
            Parameter("type", TEXT, "Of this type alone, with its `points`."),
            Parameter("range", {"type": "string", "enum": list(TypeRange)}, "How far back."),
            Parameter("sort", {"type": "string", "enum": list(TypeSort)}, "Which come first."),
        ),
    ),
    ("POST", "/marks"): Operation({201: TimeMark}, NewMark),
}
