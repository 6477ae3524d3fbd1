"""What the page hides: fields of payloads and results by their names, and the same in errors.

An answer is changed as text. So all that is not hidden stays as it is stored, such as large numbers
and the order of fields. The time grows with the length of the text and no faster: a pattern repeats
nothing (`zq/setting.py` sees to that), and each expression here gives nothing back that it took.
"""

import asyncio
import json
import re
from collections.abc import Iterator

from aiohttp import hdrs, web

from zq.http.door import Route
from zq.http.transport.answer import Answer, Response
from zq.model.errors import InvalidRequest

HIDDEN = "\u2022\u2022\u2022"
"""Stands for what is hidden."""

STORED = frozenset({"payload", "result"})
"""Fields of documents with what clients have stored."""

TOLD = frozenset({"message", "backtrace", "error", "error_message"})
"""Fields with what programs have said."""

LARGE = 16 * 1024
"""A larger answer is changed beside the loop, in characters."""

LONGEST_NAME = 1_024
"""A longer name counts as one that is to be hidden: nobody looks through it."""

JSON_TYPES = ("application/json", "application/x-ndjson")

_STRING = r'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_NAME_OR_TEXT = re.compile(rf"({_STRING})(\s*+:\s*+)?")
_TOKEN = re.compile(rf"{_STRING}|[{{}}\[\]]|[^\s\"{{}}\[\],:]++")

_SIGN = re.compile("[:=]++")
"""What stands between a name and its value in a text."""

_WORD = re.compile(r"\w*+")
_VALUE = re.compile(
    r"""\s*+(\\*+(?:"[^"]*+"|'[^']*+'|["'][^\n]*+|(?=[^\s,;&])[^\s,;&"']*+))""", re.VERBOSE
)
"""A text in quotes, of which the second may be missing, or all up to a sign that ends it."""


class Mask:
    """Hides what a pattern finds in names. A match has at most the length of the pattern."""

    def __init__(self, pattern: str) -> None:
        self._names = re.compile(pattern, re.IGNORECASE)
        self._longest_match = len(pattern)

    def text(self, said: str) -> str:
        """What a program has said, without the values that follow such names."""
        parts: list[str] = []
        done = name_from = 0
        for sign in _SIGN.finditer(said):
            at, end = sign.span()
            if at < done:
                continue
            if self._ends_with_name(said, name_from, at) and (value := _VALUE.match(said, end)):
                parts += (said[done : value.start(1)], HIDDEN)
                done = value.end()
            name_from = max(end, done)
        return "".join([*parts, said[done:]]) if parts else said

    def document(self, text: str) -> str:
        """One or more documents of JSON, without what is to be hidden."""
        return "".join(self._parts(text))

    def over(self, route: Route) -> Route:
        """A route whose answers hide it."""
        handle = route.handler

        async def handler(request: web.BaseRequest) -> Response:
            response = await handle(request)
            if isinstance(response, Answer) and response.body:
                await self._hide(response)
            return response

        handler.__doc__ = handle.__doc__
        return route._replace(handler=handler)

    async def _hide(self, response: Answer) -> None:
        kind = response.headers.get(hdrs.CONTENT_TYPE, "").partition(";")[0]
        if kind not in JSON_TYPES:
            response.body = b""
            raise InvalidRequest("with --ui-mask the page answers in JSON only: accept that")
        text = response.body.decode()
        if len(text) > LARGE:
            text = await asyncio.to_thread(self.document, text)
        else:
            text = self.document(text)
        response.body = text.encode()

    def _ends_with_name(self, said: str, start: int, end: int) -> bool:
        """True if a part of a text ends with a name that the pattern matches, perhaps in quotes."""
        start = max(start, end - LONGEST_NAME)
        before = said[start:end].rstrip()
        if before.endswith(('"', "'")):
            before = before[:-1].rstrip("\\")
        word = len(before) - _WORD.match(before[::-1]).end()  # type: ignore[union-attr]
        if self._hides(before[word:]):
            return True
        # The pattern may match more than one word.
        at = max(word - self._longest_match, 0)
        while at < word and (found := self._names.search(before, at)):
            if found.end() >= word:
                return True
            at = found.start() + 1
        return False

    def _hides(self, name: str) -> bool:
        return len(name) >= LONGEST_NAME or self._names.search(name) is not None

    def _parts(self, text: str) -> Iterator[str]:
        """Documents in parts."""
        at = done = 0
        while (found := _NAME_OR_TEXT.search(text, at)) is not None:
            at = found.end()
            if found[2] is None or (name := json.loads(found[1])) not in STORED | TOLD:
                continue
            end = _end_of_value(text, at)
            yield text[done:at]
            if name in TOLD and text.startswith('"', at):
                yield self._string(text[at:end])
            else:
                yield from self._stored_parts(text[at:end])
            at = done = end
        yield text[done:]

    def _stored_parts(self, text: str) -> Iterator[str]:
        """A payload or a result in parts."""
        at = done = 0
        while (found := _NAME_OR_TEXT.search(text, at)) is not None:
            at = end = found.end()
            if found[2] is None:
                start, instead = found.start(), self._string(found[1])
            elif self._hides(json.loads(found[1])):
                start, end, instead = at, _end_of_value(text, at), _quoted(HIDDEN)
            else:
                continue
            yield text[done:start]
            yield instead
            at = done = end
        yield text[done:]

    def _string(self, quoted: str) -> str:
        """A string of JSON. One in which nothing is to be hidden stays as it is written."""
        if not (":" in quoted or "=" in quoted or "\\" in quoted):
            return quoted
        said = json.loads(quoted)
        shown = self.text(said)
        return quoted if shown is said else _quoted(shown)


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _end_of_value(text: str, at: int) -> int:
    """Where the value that begins at this place ends."""
    depth = 0
    while (found := _TOKEN.search(text, at)) is not None:
        at = found.end()
        if found[0] in ("{", "["):
            depth += 1
        elif found[0] in ("}", "]"):
            depth -= 1
        if depth == 0:
            break
    return at
