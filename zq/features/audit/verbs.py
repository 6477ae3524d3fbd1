"""The verb of the audit."""

from zq.features.audit.wire import ActionsDocument
from zq.model.keys import KeyScope
from zq.verbs.parameters import HUNDRED, WHOLE
from zq.verbs.verb import Parameter, Verb

_SOME = {"type": "string", "minLength": 1}

CHOOSING = (
    Parameter("who", _SOME, "Only those of this actor or address."),
    Parameter("verb", _SOME, "Only those with this `verb`."),
    Parameter("queue", _SOME, "Only those that name this queue."),
    Parameter("since", WHOLE, "Only those at this time or later, in milliseconds."),
    Parameter("until", WHOLE, "Only those at this time or earlier."),
)

LIST = Verb(
    "GET",
    "/audit",
    KeyScope.READ,
    ActionsDocument,
    query=(Parameter("before", WHOLE, "Only actions before this `seq`."), HUNDRED, *CHOOSING),
    whole=True,
    lines="actions",
)
