"""What the verb of the audit does."""

from collections.abc import Callable, Mapping

from msgspec import UNSET

from zq.answers import Asked, VerbAnswers
from zq.features.audit import verbs
from zq.features.audit.model import OperatorAction
from zq.features.audit.service import Audit
from zq.features.audit.verbs import ActionsDocument, action_document, summary_of
from zq.model.job import MAX_TIME
from zq.wire.query import limit_in, whole_number

ANSWERS = VerbAnswers()

DEFAULT_LIMIT = 100
MOST_LIMIT = 1_000


@ANSWERS.to(verbs.LIST)
async def list(asked: Asked) -> ActionsDocument:
    """The actions of operators, the latest first: each request with the scope `manage`.

    What the operators' page reveals is among it. Each action has `seq`, `at`, `actor` (the name
    of the user or the key), `address`, `method`, `path`, `query`, `status`, `answer` if that is
    small, and what was done: `verb` and `words`. `limit` is how many at most: 1 to 1,000; 100
    by default. `before` leaves out those from this `seq` on. `who` (an actor or an address),
    `verb`, `queue`, `since` and `until` (in milliseconds) choose among them. A search looks at
    20,000 actions; if there are more, it says `searched_to`, and the same request with that as
    `before` goes on. NDJSON has one action a line.
    """
    given = asked.query
    before = whole_number("before", given["before"], MAX_TIME) if "before" in given else None
    limit = limit_in(given, DEFAULT_LIMIT, MOST_LIMIT)
    page = await asked.services[Audit].latest(before, limit, _chosen(given))
    reached = UNSET if page.reached is None else page.reached
    return ActionsDocument([action_document(each) for each in page.actions], reached)


def _chosen(given: Mapping[str, str]) -> Callable[[OperatorAction], bool] | None:
    """The choice in a query, if there is one. Raises `InvalidRequest`."""
    if not any(each.name in given for each in verbs.CHOOSING):
        return None
    since = whole_number("since", given.get("since", "0"), MAX_TIME)
    until = whole_number("until", given.get("until", str(MAX_TIME)), MAX_TIME)
    who, verb, queue = given.get("who"), given.get("verb"), given.get("queue")

    def matches(action: OperatorAction) -> bool:
        if not since <= action.at <= until or who not in (None, action.actor, action.address):
            return False
        if verb is None and queue is None:
            return True
        summary = summary_of(action)
        return verb in (None, summary.verb) and (queue is None or queue in summary.queues)

    return matches
