"""The words of a door: what the native API calls a job is a record or a message at another."""

import re
from collections.abc import Mapping

from zq.model.errors import ZqError

_KEPT = r"""(?<!\w)'[^']*'(?!\w)|"[^"]*"|`[^`]*`|--[\w-]+|/\S+"""
"""Names and texts that are quoted, options, and paths."""


class Words:
    """The texts of errors at a door: its own for some errors, and its nouns in all others."""

    def __init__(
        self,
        nouns: Mapping[str, str],
        said: Mapping[type[ZqError], str],
        own: frozenset[type[ZqError]] = frozenset(),
    ) -> None:
        """`nouns` maps a native noun to the door's. Errors of its `own` use its nouns already."""
        self._nouns = {**nouns, **{f"{noun}s": f"{other}s" for noun, other in nouns.items()}}
        self._said = said
        self._own = own
        self._found = re.compile(rf"{_KEPT}|\b(?:{'|'.join(self._nouns)})\b")

    def of(self, error: ZqError) -> str:
        """The text of an error, as an answer can hold it."""
        if type(error) in self._own:
            text = error.message
        else:
            text = self._said.get(type(error)) or self._found.sub(self._noun, error.message)
        # A message may cite bytes of a header that are no text; an answer cannot.
        return text.encode(errors="replace").decode()

    def _noun(self, found: re.Match[str]) -> str:
        return self._nouns.get(found[0], found[0])
