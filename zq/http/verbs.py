"""The routes of the rooms' verbs, and how they are described."""

from collections.abc import Iterable, Sequence
from types import NoneType
from typing import Any

import msgspec
from aiohttp import web

from zq.answers import Answering, Asked, Rows, all_answers
from zq.http.api.endpoints import answer, endpoint, is_careful, lines_or_codec, parameters
from zq.http.api.parts import ApiParts
from zq.http.door import PATH, Handler, Route
from zq.http.guard import KEY, actor_of, reach_of
from zq.http.transport.answer import Answer
from zq.model.errors import InvalidRequest
from zq.verbs import Operation, Verb
from zq.wire.codecs import JSON, BodyCodec, decode
from zq.wire.framing import NDJSON


def operations() -> dict[tuple[str, str], Operation]:
    """The parameters and answers of all verbs, by method and path."""
    return {(verb.method, verb.path): _operation(verb) for verb in all_answers()}


class VerbsApi:
    """Serves the verbs of the rooms."""

    def __init__(self, parts: ApiParts) -> None:
        self._services = parts.services
        self._endpoints = parts.endpoints
        self._packer = parts.packer
        self._limits = parts.limits

    def routes(self) -> list[Route]:
        """Method, path, handler and scope of each verb."""
        return [self._route(verb, answering) for verb, answering in all_answers().items()]

    def _route(self, verb: Verb[Any], answering: Answering[Any]) -> Route:
        known = [parameter.name for parameter in verb.query]

        async def serve(
            request: web.BaseRequest, accepted: BodyCodec, body: bytes = b"", sent: BodyCodec = JSON
        ) -> Answer:
            document = await answering(self._asked(request, verb, known, body, sent))
            if document is None:
                return Answer(verb.status)
            if isinstance(document, Rows):
                return await self._packer.listed(
                    document.name, document.rows, document.document, accepted
                )
            return await self._packer.answer(document, accepted, verb.status)

        async def serve_lines(request: web.BaseRequest) -> Answer:
            codec = lines_or_codec(request)
            document = await answering(self._asked(request, verb, known, b"", JSON))
            return answer(document, codec) if codec else _in_lines(getattr(document, verb.lines))

        serve.__doc__ = serve_lines.__doc__ = answering.__doc__
        if verb.lines:
            handler: Handler = serve_lines
        elif verb.body is not None:
            handler = self._endpoints.change(
                serve, optional=verb.optional, takes_gzip=verb.takes_gzip
            )
        else:
            handler = endpoint(serve)
        return Route(
            verb.method, verb.path, handler, verb.scope, whole=verb.whole, query=bool(verb.query)
        )

    def _asked(
        self,
        request: web.BaseRequest,
        verb: Verb[Any],
        known: Sequence[str],
        body: bytes,
        sent: BodyCodec,
    ) -> Asked:
        try:
            query = parameters(request, known)
        except InvalidRequest:
            _refuse_bad_body(verb, body, sent)
            raise
        path = request[PATH]
        return Asked(
            services=self._services,
            path=path,
            query=query,
            body=body,
            codec=sent,
            limits=self._limits,
            reach=reach_of(request),
            actor=actor_of(request),
            key=request.get(KEY),
            careful=is_careful(request),
        )


def _refuse_bad_body(verb: Verb[Any], body: bytes, sent: BodyCodec) -> None:
    """Raise `InvalidRequest` for a faulty body: it is reported before a faulty query, as in Zizq.

    A verb's answer reads the body once the query is known to be good.
    """
    if verb.body is not None and (body or not verb.optional):
        decode(body, sent, msgspec.json.Decoder(verb.body))


def _in_lines(rows: Iterable[object]) -> Answer:
    body = b"".join(msgspec.json.encode(row) + b"\n" for row in rows)
    return Answer(200, body, {"Content-Type": NDJSON.content_type})


def _operation(verb: Verb[Any]) -> Operation:
    return Operation(
        {verb.status: None if verb.answer is NoneType else verb.answer},
        verb.body,
        optional_body=verb.optional,
        parameters=verb.query,
        refusals=verb.refusals,
    )
