"""What an operator has done, in words, from the request that the audit has recorded.

A record has the path, the query and the answer of a request, if that is small, and not its body.
"""

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import parse_qsl, unquote

import msgspec

if TYPE_CHECKING:
    from zq.features.audit.model import OperatorAction

GONE = 499
"""The status of an answer that reached nobody."""


class Deed(NamedTuple):
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

_PAGE = re.compile(r"^.*?/ui/(?:api|reveal)(?=/)")
"""The beginning of the API's paths in requests of the operators' page."""

_NO_CHOICE = frozenset({"queue", "upto", "reason", "count", "typed"})
"""Parameters that do not say which jobs are meant, or that are said in other words."""


def deed_of(action: "OperatorAction") -> Deed:
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
    if query.get("reason"):
        words += f": {query['reason']}"
    return Deed(verb, said.queues, words)


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
