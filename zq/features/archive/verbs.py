"""The verbs about completed jobs that come back, and about when expired jobs go."""

from zq.features.schemas.verbs import CleaningDocument, Replayed, ReplaySent
from zq.model.keys import KeyScope
from zq.verbs.verb import FULL, Verb

READ, MANAGE = KeyScope.READ, KeyScope.MANAGE

_NOT_KEPT = {422: "The queue keeps no completed jobs, or none so old."}

REPLAY = Verb(
    "POST",
    "/queues/{queue}/replay",
    MANAGE,
    Replayed,
    ReplaySent,
    optional=True,
    refusals=_NOT_KEPT | FULL,
)
CLEANING = Verb("GET", "/cleaning", READ, CleaningDocument, whole=True)
CLEAN = Verb("PUT", "/cleaning", MANAGE, CleaningDocument, CleaningDocument, whole=True)
