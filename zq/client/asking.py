"""How the client asks for a verb, whatever carries it."""

from collections.abc import Awaitable, Mapping
from typing import Protocol, TypeVar

from zq.verbs.verb import Verb

T = TypeVar("T")

NO_QUERY: Mapping[str, str] = {}


class Ask(Protocol):
    """Asks a server for a verb, with a body, parameters of the query and names for the path.

    `wait_ms` is how long the server may take beyond the usual time. A refusal raises an error.
    """

    def __call__(
        self,
        verb: Verb[T],
        body: object = None,
        query: Mapping[str, str] = NO_QUERY,
        *,
        wait_ms: int = 0,
        **path: str,
    ) -> Awaitable[T]: ...
