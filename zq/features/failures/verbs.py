"""The verb about failures and their causes."""

from zq.features.failures.model import FailureOrder, FailureRange
from zq.features.failures.wire import FailuresDocument
from zq.model.keys import KeyScope
from zq.verbs.parameters import choices, names
from zq.verbs.verb import Parameter, Verb

LIST = Verb(
    "GET",
    "/failures",
    KeyScope.READ,
    FailuresDocument,
    query=(
        Parameter("queue", names(), "Of these queues only."),
        Parameter("range", choices(FailureRange), "How far back."),
        Parameter("order", choices(FailureOrder), "Which come first."),
    ),
)
