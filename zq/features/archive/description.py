"""The parameters and answers of the routes about completed and expired jobs."""

from zq.features.schemas.wire import CleaningDocument, Replayed, ReplaySent
from zq.http.api.description.operation import Operation
from zq.verbs.refusals import FULL

OPERATIONS: dict[tuple[str, str], Operation] = {
    ("POST", "/queues/{queue}/replay"): Operation(
        {200: Replayed},
        ReplaySent,
        optional_body=True,
        refusals={422: "The queue keeps no completed jobs, or none so old.", **FULL},
    ),
    ("GET", "/cleaning"): Operation({200: CleaningDocument}),
    ("PUT", "/cleaning"): Operation({200: CleaningDocument}, CleaningDocument),
}
