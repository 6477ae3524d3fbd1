"""The verb of the audit, and what an operator has done, in words.

A record has the path, the query and the answer of a request, if that is small, and not its body.
"""

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import parse_qsl, unquote

import msgspec
from msgspec import UNSET, UnsetType

from zq.model.keys import KeyScope
from zq.verbs import HUNDRED, WHOLE, Parameter, Verb

if TYPE_CHECKING:
    from zq.features.audit.model import OperatorAction, RecordedAction


GONE = 499
"""The status of an answer that reached nobody."""


class ActionSummary(NamedTuple):
    """An action in words: a verb to search by, the queues that it names, and a sentence."""

    verb: str
    queues: tuple[str, ...]
    words: str


_QUEUE, _BUDGET = "/queues/{queue}", "/budgets/{key}"

_RULES = (
    ("POST", "/jobs/cancel", "cancel", "cancelled {cancelled jobs}"),
    ("POST", "/jobs/requeue", "requeue", "requeued {requeued jobs}"),
    ("POST", "/jobs/redrive", "requeue", "requeued {redriven jobs}"),
    ("DELETE", "/jobs", "delete", "deleted {deleted jobs}"),
    ("PATCH", "/jobs", "change", "changed {patched jobs}"),
    ("POST", "/jobs/by-key/cancel", "cancel", "cancelled {the job}"),
    ("POST", "/jobs/{id}/cancel", "cancel", "cancelled {the job}"),
    ("POST", "/jobs/{id}/requeue", "requeue", "requeued {the job}"),
    ("POST", "/jobs/{id}/retry", "requeue", "requeued {the job}"),
    ("DELETE", "/jobs/{id}", "delete", "deleted {the job}"),
    ("PATCH", "/jobs/{id}", "change", "changed {the job}"),
    ("PATCH", "/jobs/{id}/retention", "change", "changed how long {the job} is kept"),
    ("GET", "/jobs/{id}", "reveal", "looked at what is hidden in {the job}"),
    ("GET", "/jobs/{id}/errors", "reveal", "looked at what is hidden in the errors of {the job}"),
    ("POST", "/sweeps/{id}/undo", "undo", "took back {undone jobs} of the cancellation {id}"),
    ("DELETE", "/sweeps/{id}", "stop", "stopped the sweep {id}"),
    ("PATCH", f"{_QUEUE}/settings", "settings", "{changed settings}"),
    ("PUT", f"{_QUEUE}/settings", "settings", "{changed settings}"),
    ("DELETE", f"{_QUEUE}/settings", "settings", "took away the settings of {queue}"),
    ("PUT", f"{_QUEUE}/schema", "schema", "set the schema of {queue}"),
    ("DELETE", f"{_QUEUE}/schema", "schema", "took away the schema of {queue}"),
    ("PUT", f"{_QUEUE}/targets/{{target}}", "targets", "made {target} a target of {queue}"),
    ("DELETE", f"{_QUEUE}/targets/{{target}}", "targets", "let go the target {target} of {queue}"),
    ("POST", f"{_QUEUE}/replay", "replay", "replayed jobs of {queue}"),
    ("POST", _BUDGET, "budget", "created the budget {key}"),
    ("PUT", _BUDGET, "budget", "set the budget {key}"),
    ("PATCH", _BUDGET, "budget", "changed the budget {key}"),
    ("DELETE", _BUDGET, "budget", "deleted the budget {key}"),
    ("DELETE", "/producers/{name}", "producer", "deleted the producer {name}"),
    ("DELETE", "/workers/{id}", "drop", "ended the streams of the worker {id}"),
    ("POST", "/marks", "mark", "marked the charts"),
    ("POST", "/backup", "backup", "took a backup"),
    ("POST", "/compact", "compact", "compacted the database"),
    ("POST", "/reset", "reset", "deleted everything"),
)
"""Method, path, verb and words. `{n jobs}` are the matching jobs, with the number `n` of the
answer."""

_PAGE = re.compile("^/ui/(?:api|reveal)(?=/)")
"""The beginning of the paths of what was done on the operators' page, in older records."""

_NO_CHOICE = frozenset({"queue", "upto", "reason", "count", "typed"})
"""Parameters that do not say which jobs are meant, or that are said in other words."""


def summary_of(action: "OperatorAction") -> ActionSummary:
    """The words for an action: `mia cancelled 412 jobs of mail`."""
    who = action.actor or f"somebody at {action.address}"
    query = dict(parse_qsl(action.query, keep_blank_values=True))
    answer = msgspec.json.decode(action.answer) if bytes(action.answer) else {}
    path = _PAGE.sub("", action.path)
    verb, words, parts = _rule(action.method, path)
    said = _Said(parts, query, answer if isinstance(answer, dict) else {}, action.before)
    if verb == "settings" and "paused" in said.before:
        verb = "resume" if said.before["paused"] else "pause"
    words = f"{who} {_PLACE.sub(lambda place: said.at(place[1]), words)}"
    if action.status == GONE:
        words += ", as a whole, in part or not: the answer reached nobody"
    elif action.status >= 400:
        words += f", in part, and was refused the rest ({action.status})"
    if query.get("reason"):
        words += f": {query['reason']}"
    return ActionSummary(verb, said.queues, words)


def _rule(method: str, path: str) -> tuple[str, str, Mapping[str, str]]:
    """The verb and the words of a request, and the parts of its path."""
    for pattern, verb, words in _PATTERNS:
        if (found := pattern.fullmatch(f"{method} {path}")) is not None:
            return verb, words, {name: unquote(part) for name, part in found.groupdict().items()}
    queue = re.search(r"/(?:queues|topics)/([^/]+)", path)
    parts = {"queue": unquote(queue[1])} if queue else {}
    return method.lower(), "asked for {method} {path}", {**parts, "method": method, "path": path}


_PLACE = re.compile(r"\{([^}]+)\}")
_PATTERNS = [
    (re.compile(_PLACE.sub(r"(?P<\1>[^/]+)", f"{method} {path}")), verb, words)
    for method, path, verb, words in _RULES
]


class _Said(NamedTuple):
    """The parts of a request that say what it did."""

    path: Mapping[str, str]
    query: Mapping[str, str]
    answer: Mapping[str, Any]
    before: Mapping[str, Any]

    @property
    def queues(self) -> tuple[str, ...]:
        """The queues that the path, the query or the answer names."""
        queue = self.path.get("queue", self.query.get("queue", self.answer.get("queue")))
        return tuple(filter(None, queue.split(","))) if isinstance(queue, str) else ()

    def at(self, place: str) -> str:
        """The words for a place in the words of a rule."""
        if place.endswith(" jobs"):
            return self._jobs(self.answer.get(place.removesuffix(" jobs")))
        if place == "the job":
            return f"the job {self.path.get('id', self.answer.get('id', ''))}{self._of()}"
        if place == "changed settings":
            return self._settings()
        return self.path[place]

    def _jobs(self, n: Any) -> str:
        many = "jobs" if not isinstance(n, int) else "1 job" if n == 1 else f"{n:,} jobs"
        choice = [f"{name}:{text}" for name, text in self.query.items() if name not in _NO_CHOICE]
        more = f" ({' '.join(choice)})" if choice else ""
        return f"{many}{self._of()}{more}"

    def _settings(self) -> str:
        queue = self.path["queue"]
        if self.before.get("paused"):
            return f"resumed {queue}"
        if "paused" in self.before:
            reason = self.answer.get("pause_reason")
            return f"paused {queue}{f' ({reason})' if reason else ''}"
        changed = ", ".join(self.before)
        return f"changed {changed} of {queue}" if changed else f"left the settings of {queue} alone"

    def _of(self) -> str:
        return f" of {', '.join(self.queues)}" if self.queues else ""


class ActionDocument(msgspec.Struct, kw_only=True):
    """One action. `at` is in milliseconds. `actor` names the user or the key.

    A `status` of 499 says that the client had gone before its answer. `words` say what was done.
    `queues` are those that it names. `before` has the settings that were changed, as they were:
    null where there was none.
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
    queues: list[str] | UnsetType = UNSET
    words: str = ""


class ActionsDocument(msgspec.Struct):
    """Actions, the latest one first. A search may break off after the action `searched_to`."""

    actions: list[ActionDocument]
    searched_to: int | UnsetType = UNSET


def action_document(recorded: "RecordedAction") -> ActionDocument:
    action = recorded.action
    summary = summary_of(action)
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
        verb=summary.verb,
        queues=[*summary.queues] or UNSET,
        words=summary.words,
    )


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
