"""The routes of the rooms' verbs, and how they are described."""

from types import NoneType
from typing import Any

from aiohttp import web

from zq.answers import Answering, Asked, all_answers
from zq.http.api.description.operation import Operation
from zq.http.api.endpoints import BodyEndpoints, endpoint
from zq.http.api.packing import Packer
from zq.http.api.query import parameters
from zq.http.door import PATH, Route
from zq.http.guard import actor_of, reach_of
from zq.http.transport.answer import Answer
from zq.service.services import Services
from zq.verbs.verb import Verb
from zq.wire.bodies import Limits
from zq.wire.codecs import JSON, BodyCodec


def operations() -> dict[tuple[str, str], Operation]:
    """The parameters and answers of all verbs, by method and path."""
    return {(verb.method, verb.path): _operation(verb) for verb in all_answers()}


class VerbsApi:
    """Serves the verbs of the rooms."""

    def __init__(
        self, services: Services, endpoints: BodyEndpoints, packer: Packer, limits: Limits
    ) -> None:
        self._services = services
        self._endpoints = endpoints
        self._packer = packer
        self._limits = limits

    def routes(self) -> list[Route]:
        """Method, path, handler and scope of each verb."""
        return [self._route(verb, answering) for verb, answering in all_answers().items()]

    def _route(self, verb: Verb[Any], answering: Answering[Any]) -> Route:
        known = [parameter.name for parameter in verb.query]

        async def serve(
            request: web.BaseRequest, accepted: BodyCodec, body: bytes = b"", sent: BodyCodec = JSON
        ) -> Answer:
            path = request[PATH]
            asked = Asked(
                services=self._services,
                path=path,
                query=parameters(request, known),
                body=body,
                codec=sent,
                limits=self._limits,
                reach=reach_of(request),
                actor=actor_of(request),
            )
            document = await answering(asked)
            if document is None:
                return Answer(verb.status)
            return await self._packer.answer(document, accepted, verb.status)

        serve.__doc__ = answering.__doc__
        takes_body = verb.body is not None
        handler = (
            self._endpoints.change(serve, optional=verb.optional) if takes_body else endpoint(serve)
        )
        return Route(
            verb.method, verb.path, handler, verb.scope, whole=verb.whole, query=bool(verb.query)
        )


def _operation(verb: Verb[Any]) -> Operation:
    return Operation(
        {verb.status: None if verb.answer is NoneType else verb.answer},
        verb.body,
        optional_body=verb.optional,
        parameters=verb.query,
        refusals=verb.refusals,
    )
