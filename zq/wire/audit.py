"""Actions of operators as documents for clients."""

from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET, UnsetType

if TYPE_CHECKING:
    from zq.model.audit import RecordedAction


class ActionDocument(msgspec.Struct, kw_only=True):
    """One action. `at` is in milliseconds. `actor` names the user or the key.

    A `status` of 499 says that the client had gone before its answer.
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


class ActionsDocument(msgspec.Struct):
    """Actions, the latest one first."""

    actions: list[ActionDocument]


def action_document(recorded: "RecordedAction") -> ActionDocument:
    """A recorded action."""
    action = recorded.action
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
    )
