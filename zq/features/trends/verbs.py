"""The verbs about what happened over time, and of the marks in the charts."""

from zq.features.trends.model import TimeMark, TrendRange, TypeRange, TypeSort
from zq.features.trends.wire import NewMark, TrendsDocument, TypesDocument
from zq.model.keys import KeyScope
from zq.verbs.parameters import TEXT, choices
from zq.verbs.verb import Parameter, Verb

READ, MANAGE = KeyScope.READ, KeyScope.MANAGE

HISTORY = Verb(
    "GET",
    "/stats/history",
    READ,
    TrendsDocument,
    query=(
        Parameter("queue", TEXT, "Of this queue alone; otherwise of all together."),
        Parameter("range", choices(TrendRange), "How far back."),
    ),
)
TYPES = Verb(
    "GET",
    "/stats/types",
    READ,
    TypesDocument,
    query=(
        Parameter("queue", TEXT, "Of this queue alone; otherwise of all."),
        Parameter("type", TEXT, "Of this type alone, with its `points`."),
        Parameter("range", choices(TypeRange), "How far back."),
        Parameter("sort", choices(TypeSort), "Which come first."),
    ),
)
MARK = Verb("POST", "/marks", MANAGE, TimeMark, NewMark, whole=True, created=True)
