"""Terms on which new jobs are stored: rooms bring them, and a request asks for one of them."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import msgspec

from zq.model.errors import InvalidRequest
from zq.model.keys import Key
from zq.rooms import parts
from zq.service.jobs import EnqueueMaker
from zq.wire.bulk import JobsBody, bulk_decoder


class EnqueueTerm(NamedTuple):
    """A term that a header asks for, or a field of a bulk, for what the sender's key allows.

    A room has its terms in the constant `TERMS` of its module `terms`. The functions raise errors
    of the tree. A server without keys has None for the key.
    """

    header: str
    field: str
    text: str
    """Says to users what the header is."""
    shape: type[msgspec.Struct]
    """The type of the field."""
    by_header: Callable[[str, Key | None], EnqueueMaker]
    by_field: Callable[[Any, Key | None], EnqueueMaker]


class EnqueueTerms:
    """All terms that rooms have."""

    def __init__(self) -> None:
        found = parts("terms", "TERMS", tuple)
        self.all: list[EnqueueTerm] = [term for terms in found for term in terms]
        self.bulk = bulk_decoder([(term.field, term.shape) for term in self.all])
        """Reads the body of a bulk, with the fields of terms."""

    def of(
        self, headers: Mapping[str, str], key: Key | None, bulk: JobsBody | None = None
    ) -> EnqueueMaker | None:
        """The term that a request asks for, as what makes its command. None: new jobs, as usual.

        Raises `InvalidRequest` for two, and the errors of the term.
        """
        asked: list[EnqueueMaker] = []
        for term in self.all:
            if term.header in headers:
                asked.append(term.by_header(headers[term.header], key))
            field = None if bulk is None else getattr(bulk, term.field)
            if field is not None:
                asked.append(term.by_field(field, key))
        if len(asked) > 1:
            names = ", ".join(f"{term.header} or {term.field}" for term in self.all)
            raise InvalidRequest(f"a request has one of these, once: {names}")
        return asked[0] if asked else None
