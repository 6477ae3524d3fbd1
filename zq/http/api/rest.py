"""The APIs of the native door besides those for new jobs, takes and settlements.

A server imports them, and with them most of what rooms have, at the first request for one.
"""

from collections.abc import Callable, Sequence

from zq import rooms
from zq.http.api.description.openapi import DescriptionApi
from zq.http.api.events import EventsApi
from zq.http.api.keys import KeysApi
from zq.http.api.outcomes import OutcomesApi
from zq.http.api.parts import Api, ApiParts
from zq.http.api.push import PushApi
from zq.http.api.settings import SettingsApi
from zq.http.api.workers import WorkersApi
from zq.http.door import Route
from zq.http.verbs import VerbsApi

BROUGHT: list[tuple[Callable[[ApiParts], Api], ...]] = rooms.parts("http", "APIS", tuple)

APIS: tuple[Callable[[ApiParts], Api], ...] = (
    OutcomesApi,
    PushApi,
    WorkersApi,
    KeysApi,
    SettingsApi,
    EventsApi,
    VerbsApi,
    *(api for apis in BROUGHT for api in apis),
)
"""The APIs of the core, before the ones that rooms bring in their `http.py`."""


def rest_routes(parts: ApiParts, quick: Sequence[Route]) -> Sequence[Route]:
    """The routes of `APIS`, and the one that describes them together with the `quick` ones."""
    routes = [route for api in APIS for route in api(parts).routes()]
    return routes + DescriptionApi([*quick, *routes]).routes()
