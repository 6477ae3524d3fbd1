"""The parameters and answers of one route, as the tables of all routes have them."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from zq.verbs.verb import Parameter


class Operation(NamedTuple):
    """`answers` maps a status to the types of its document; None means no document.

    `refusals` are the errors, by status, besides those of all routes. A route with `streams`
    answers with one document after the other, in these media types. With `plain_refusal` a 400 is
    plain text.
    """

    answers: Mapping[int, Any]
    body: Any = None
    optional_body: bool = False
    parameters: tuple[Parameter, ...] = ()
    refusals: Mapping[int, str] = {}
    streams: tuple[str, ...] = ()
    plain_refusal: bool = False
