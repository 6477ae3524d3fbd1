"""The routes of the admin API."""

from collections.abc import Sequence

from zq.http.api.parts import ApiParts
from zq.http.door import Route
from zq.http.guard import Guard
from zq.operators.admin.http.events import ViewersApi
from zq.operators.admin.http.maintenance import MaintenanceApi


def admin_routes(parts: ApiParts, guard: Guard) -> Sequence[Route]:
    """Every route of the door, but for probes and those that other rooms add."""
    return [
        *ViewersApi(parts.services, guard).routes(),
        *MaintenanceApi(parts.services, parts.answers).routes(),
    ]
