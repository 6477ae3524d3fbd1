"""The parameters and answers of the routes about the history."""

from zq.features.history.http import HistoryDocument
from zq.verbs import WHOLE, Operation, Parameter

OPERATIONS: dict[tuple[str, str], Operation] = {
    ("GET", "/history"): Operation(
        {200: HistoryDocument},
        parameters=(
            Parameter("after", WHOLE, "Records behind this one only."),
            Parameter("until", WHOLE, "Records up to this one only."),
            Parameter("limit", WHOLE, "How many at most: 1 to 10,000; 1,000 unless given."),
            Parameter("wait_ms", WHOLE, "How long to wait for a first record."),
        ),
        refusals={
            409: "There has never been a record of that number.",
            410: "The records behind `after` are past their retention.",
        },
    ),
}
