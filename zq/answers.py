"""What verbs do, apart from how they are asked: over HTTP, or by a program in this process."""

from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Generic, TypeVar

from zq.model.keys import Key
from zq.model.reach import Reach
from zq.rooms import parts
from zq.service.services import Services
from zq.verbs import Verb
from zq.wire.bodies import Limits
from zq.wire.codecs import BodyCodec

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Asked:
    """One request to a verb.

    `path` has the names in its path, `query` the parameters that the verb knows, as text. `actor`
    is the name of the sender's key or user, and `key` that key, where keys are needed. A `careful`
    one is of the operators' page: a change by filter is bound to a preview.
    """

    services: Services
    path: Mapping[str, str]
    query: Mapping[str, str]
    body: bytes
    codec: BodyCodec
    limits: Limits
    reach: Reach
    actor: str | None = None
    key: Key | None = None
    careful: bool = False


@dataclass(frozen=True, slots=True)
class Rows(Generic[T]):
    """A document of the type T whose field `name` has a document for each row.

    There may be so many rows that a server makes them in slices.
    """

    name: str
    rows: list[Any]
    document: Callable[[Any], object]

    def whole(self) -> dict[str, list[object]]:
        """The document, made at once."""
        return {self.name: list(map(self.document, self.rows))}


Answering = Callable[[Asked], Coroutine[Any, Any, T | Rows[T]]]
"""Does what a verb says, and returns its document. Its docstring describes the verb to users."""


class VerbAnswers(dict[Verb[Any], Answering[Any]]):
    """The constant `ANSWERS` of a room's `answers.py`: each verb with the function that carries it
    out."""

    def to(self, verb: Verb[T]) -> Callable[[Answering[T]], Answering[T]]:
        """Take a function for what the verb does."""

        def take(answering: Answering[T]) -> Answering[T]:
            self[verb] = answering
            return answering

        return take


@cache
def all_answers() -> VerbAnswers:
    """The verbs of all rooms."""
    found = VerbAnswers()
    for answers in parts("answers", "ANSWERS", VerbAnswers):
        found |= answers
    return found


def answering_of(verb: Verb[Any]) -> Answering[Any]:
    """The function that carries out a verb, whatever type its answer is read as."""
    return _by_place()[verb.method, verb.path]


@cache
def _by_place() -> dict[tuple[str, str], Answering[Any]]:
    return {(verb.method, verb.path): answer for verb, answer in all_answers().items()}
