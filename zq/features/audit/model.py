"""The audit: a record of each thing that an operator has done over HTTP."""

from collections.abc import Sequence
from typing import Any, ClassVar

import msgspec

from zq.model.commands import Command

AUDIT_LOG = "audit"

MOST_QUERY = 1024
"""The most characters of a query that a record keeps."""

MOST_ANSWER = 512
"""The largest answer, in bytes, that a record keeps: it has the counts."""


class OperatorAction(msgspec.Struct, frozen=True, omit_defaults=True):
    """One action of an operator. `at` is in milliseconds since the epoch.

    `path` has escapes, and is that of the native API if the page has sent the same request.
    `actor` is the name of the user or the key, if there is one, and `address` that of the peer.
    `answer` is the document that was answered, if it is small. `before` has the settings that a
    change of a queue's settings has changed, as they were.
    """

    at: int
    method: str
    path: str
    status: int
    address: str
    actor: str | None = None
    query: str = ""
    answer: msgspec.Raw = msgspec.Raw()
    before: dict[str, Any] = {}


class RecordedAction(msgspec.Struct, frozen=True):
    """An action and its number. Numbers rise without gaps."""

    seq: int
    action: OperatorAction


class RecordActions(Command[None], frozen=True):
    """Append actions to the audit."""

    follows: ClassVar[bool] = True

    actions: Sequence[OperatorAction]
