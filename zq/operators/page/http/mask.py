"""What the page hides: fields of payloads and results by their names, and the same in errors.

An answer is changed as text. So all that is not hidden stays as it is stored, such as large numbers
and the order of fields. The time grows with the length of the text and no faster: a pattern repeats
nothing (`zq/setting.py` sees to that), and each expression here gives nothing back that it took.
"""

import re
from collections.abc import Callable, Generator
from typing import TypeVar

import msgspec
from aiohttp import hdrs, web

from zq.engine.turns import Turns
from zq.http.door import Route
from zq.http.transport.answer import Answer, Response
from zq.model.errors import InvalidRequest
from zq.wire.codecs import MSGPACK

HIDDEN = "\u2022\u2022\u2022"
"""Stands for what is hidden."""

_HIDDEN = f'"{HIDDEN}"'

STORED = frozenset({"payload", "result"})
"""Fields of documents with what clients have stored."""

TOLD = frozenset({"message", "backtrace", "error", "error_message", "text"})
"""Fields with what programs have said."""

MASKED = STORED | TOLD

SLICE = 1_000
"""The parts of an answer that are examined in a turn of the event loop, in about a millisecond."""

CHARACTERS = 64
"""The characters of a text that take the time of one more step."""

LONGEST_NAME = 1_024
"""A longer name counts as one that is to be hidden: nobody looks through it."""

JSON_TYPES = ("application/json", "application/x-ndjson")

_SHORT = re.compile(r'"[^"\\]{0,4096}+(?:\\.[^"\\]{0,64}+){0,64}+"')
_PART = re.compile(r'[^"\\]{0,65536}+(?:\\.[^"\\]{0,64}+){0,1024}+', re.DOTALL)
"""A string of JSON, and a part of a longer one."""

_COLON = re.compile(r"\s*+:\s*+")
_BEGIN = re.compile(r"\s*+(?:([{\[])|(?=\")|[^\s\"{}\[\],:]++)")
_INNER = re.compile(r"([{}\[\]])|(?=\")|[^\"{}\[\]]{1,65536}+")
"""A bracket, the place before a string, or what is neither."""

_SIGN = re.compile("[:=]++")
"""The signs between a name and its value in a text."""

_WORD = re.compile(r"\w*+")
_VALUE = re.compile(
    r"""\s*+(\\*+(?:"[^"]*+"|'[^']*+'|["'][^\n]*+|(?=[^\s,;&])[^\s,;&"']*+))""", re.VERBOSE
)
"""A text in quotes, of which the second may be missing, or all up to a sign that ends it."""


T = TypeVar("T")
Masked = Generator[None, None, T]
"""Makes what is shown of a text. It yields between two slices."""


class Mask:
    """Hides what a pattern finds in names. A match has at most the length of the pattern.

    Others are served between two slices of a text.
    """

    def __init__(self, pattern: str, turns: Turns) -> None:
        self._names = re.compile(pattern, re.IGNORECASE)
        self._longest_match = len(pattern)
        self._turns = turns

    async def text(self, said: str) -> str:
        """A program's text without the values that follow such names."""
        return await self._done(self._text(said, _Steps()))

    async def document(self, text: str) -> str:
        """One or more documents of JSON, without what is to be hidden."""
        return await self._done(self._document(text, _Steps()))

    def over(self, route: Route) -> Route:
        """A route whose answers hide it. It refuses other formats before anything is done."""
        handle = route.handler

        async def handler(request: web.BaseRequest) -> Response:
            if MSGPACK.content_type in request.headers.get(hdrs.ACCEPT, ""):
                raise InvalidRequest("with --ui-mask the page answers in JSON only: accept that")
            response = await handle(request)
            if isinstance(response, Answer) and response.body:
                await self._hide(response)
            return response

        handler.__doc__ = handle.__doc__
        return route._replace(handler=handler)

    async def _hide(self, response: Answer) -> None:
        kind = response.headers.get(hdrs.CONTENT_TYPE, "").partition(";")[0]
        assert kind in JSON_TYPES, f"{kind} cannot be masked"
        response.body = (await self.document(response.body.decode())).encode()

    async def _done(self, masked: Masked[str]) -> str:
        while True:
            try:
                next(masked)
            except StopIteration as done:
                return done.value  # type: ignore[no-any-return]
            await self._turns.next()

    def _text(self, said: str, steps: "_Steps", write: Callable[[str], str] = str) -> Masked[str]:
        """A text without what is hidden. It is written slice by slice, if there is any of that."""
        written: list[str] = []
        parts: list[str] = []
        done = name_from = 0
        for sign in _SIGN.finditer(said):
            if steps.make_a_slice():
                written.append(write("".join(parts)))
                parts.clear()
                yield
            at, end = sign.span()
            if at < done:
                continue
            if self._ends_with_name(said, name_from, at) and (value := _VALUE.match(said, end)):
                parts += (said[done : value.start(1)], HIDDEN)
                done = value.end()
            name_from = max(end, done)
        if not done:
            return said
        return "".join([*written, write("".join([*parts, said[done:]]))])

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

    def _document(self, text: str, steps: "_Steps") -> Masked[str]:
        parts: list[str] = []
        at = done = 0
        while (start := text.find('"', at)) >= 0:
            at = yield from _end_of_string(text, start, steps)
            colon = _COLON.match(text, at)
            if colon is None or _string(text[start:at]) not in MASKED:
                continue
            at = colon.end()
            end = yield from _end_of_value(text, at, steps)
            parts.append(text[done:at])
            if text.startswith('"', at):
                parts.append((yield from self._quoted(text[at:end], steps)))
            else:
                parts.append((yield from self._stored(text[at:end], steps)))
            at = done = end
        return "".join([*parts, text[done:]])

    def _stored(self, text: str, steps: "_Steps") -> Masked[str]:
        """A payload or a result."""
        parts: list[str] = []
        at = done = 0
        while (start := text.find('"', at)) >= 0:
            at = end = yield from _end_of_string(text, start, steps)
            colon = _COLON.match(text, at)
            if colon is None:
                instead = yield from self._quoted(text[start:at], steps)
            elif self._hides(_string(text[start:at])):
                start, instead = colon.end(), _HIDDEN
                end = yield from _end_of_value(text, start, steps)
            else:
                continue
            parts += (text[done:start], instead)
            at = done = end
        return "".join([*parts, text[done:]])

    def _quoted(self, quoted: str, steps: "_Steps") -> Masked[str]:
        """A string of JSON. One in which nothing is to be hidden stays as it is written."""
        if not (":" in quoted or "=" in quoted or "\\" in quoted):
            return quoted
        said = _string(quoted)
        if steps.make_a_slice(len(quoted)):
            yield
        shown = yield from self._text(said, steps, _escaped)
        return quoted if shown is said else f'"{shown}"'


class _Steps:
    """Counts what is looked at, over all of one answer: a step is a sign or a word."""

    def __init__(self) -> None:
        self._left = SLICE

    def make_a_slice(self, length: int = 0) -> bool:
        """Count a step, and more for a long text. True if others should be served before it."""
        self._left -= 1 + length // CHARACTERS
        if self._left > 0:
            return False
        self._left = SLICE
        return True


def _string(quoted: str) -> str:
    return msgspec.json.decode(quoted, type=str)


def _escaped(text: str) -> str:
    return msgspec.json.encode(text).decode()[1:-1]


def _end_of_string(text: str, start: int, steps: _Steps) -> Masked[int]:
    """The end of the string that begins at this place."""
    if steps.make_a_slice():
        yield
    if (short := _SHORT.match(text, start)) is not None:
        return short.end()
    at = start + 1
    while (part := _PART.match(text, at)) is not None and part.end() > at:
        if steps.make_a_slice(part.end() - at):
            yield
        at = part.end()
    return at + 1


def _end_of_value(text: str, at: int, steps: _Steps) -> Masked[int]:
    """The end of the value that begins at this place."""
    depth = 0
    pattern = _BEGIN
    while (found := pattern.match(text, at)) is not None:
        if steps.make_a_slice(found.end() - at):
            yield
        at = found.end()
        if found[1] is not None:
            depth += 1 if found[1] in "{[" else -1
        elif text.startswith('"', at):
            at = yield from _end_of_string(text, at, steps)
        if not depth:
            break
        pattern = _INNER
    return at
