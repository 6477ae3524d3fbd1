"""Actions of operators as documents for clients."""

from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET, UnsetType

from zq.features.audit.wire_deeds import deed_of

if TYPE_CHECKING:
    from zq.features.audit.model import RecordedAction


class ActionDocument(msgspec.Struct, kw_only=True):
    """One action. `at` is in milliseconds. `actor` names the user or the key.

    A `status` of 499 says that the client had gone before its answer. `words` say what was done.
    `before` has the settings that were changed, as they were: null where there was none.
    """

    seq: int
    at: int
    actor: str | UnsetType = UNSET
    address: str
    method: str
    path: str
    query: str | UnsetType = UNSET
    status: int
    answer: Any = UNSET
    before: dict[str, Any] | UnsetType = UNSET
    verb: str = ""
    words: str = ""


class ActionsDocument(msgspec.Struct):
    """Actions, the latest one first. A search may break off after the action `searched_to`."""

    actions: list[ActionDocument]
    searched_to: int | UnsetType = UNSET


def action_document(recorded: "RecordedAction") -> ActionDocument:
    """A recorded action."""
    action = recorded.action
    deed = deed_of(action)
    return ActionDocument(
        seq=recorded.seq,
        at=action.at,
        actor=UNSET if action.actor is None else action.actor,
        address=action.address,
        method=action.method,
        path=action.path,
        query=action.query or UNSET,
        status=action.status,
        answer=msgspec.json.decode(action.answer) if bytes(action.answer) else UNSET,
        before=action.before or UNSET,
        verb=deed.verb,
        words=deed.words,
    )
