"""What the page hides: fields of payloads and results by their names, and the same in errors.

An answer is changed as text. So all that is not hidden stays as it is stored, such as large numbers
and the order of fields.
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

TOLD = frozenset({"message", "backtrace", "error"})
"""Fields with what programs have said."""

LARGE = 64 * 1024
"""A larger answer is changed beside the loop, in bytes."""

JSON_TYPES = ("application/json", "application/x-ndjson")

_STRING = r'"(?:[^"\\]|\\.)*"'
_TOKEN = re.compile(rf"({_STRING})(\s*:\s*)?|[{{}}\[\]]|[^\s\"{{}}\[\],:]+")


class Mask:
    """Hides what a pattern finds in names."""

    def __init__(self, pattern: str) -> None:
        self._names = re.compile(pattern, re.IGNORECASE)
        self._said = re.compile(
            rf"(?P<zq_name>(?:{pattern})\w*[\"']?\s*[:=]\s*)(\"[^\"]*\"|'[^']*'|[^\s,;&\"']+)",
            re.IGNORECASE,
        )

    def text(self, said: str) -> str:
        """What a program has said, without the values that follow such names."""
        return self._said.sub(lambda found: found["zq_name"] + HIDDEN, said)

    def document(self, text: str) -> str:
        """One or more documents of JSON, without what is to be hidden."""
        return "".join(self._parts(text, stored=False))

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

    def _parts(self, text: str, *, stored: bool) -> Iterator[str]:
        """The text in parts. `stored`: all of it is a payload or a result."""
        at = done = 0
        while (found := _TOKEN.search(text, at)) is not None:
            at = found.end()
            string = found[1]
            if string is None:
                continue
            if found[2] is None:
                if stored and self._names.search(string):
                    yield text[done : found.start()]
                    yield _quoted(self.text(json.loads(string)))
                    done = at
                continue
            name = json.loads(string)
            if not stored and name not in STORED | TOLD:
                continue
            hidden = stored and self._names.search(name) is not None
            if stored and not hidden:
                continue
            end = _end_of_value(text, at)
            value = text[at:end]
            yield text[done:at]
            yield self._instead(value, hidden=hidden, told=name in TOLD)
            at = done = end
        yield text[done:]

    def _instead(self, value: str, *, hidden: bool, told: bool) -> str:
        if hidden:
            return _quoted(HIDDEN)
        if told and value.startswith('"'):
            return _quoted(self.text(json.loads(value)))
        return "".join(self._parts(value, stored=True))


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
