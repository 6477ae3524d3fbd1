"""A request that every server answers, and the connections that a server has accepted."""

from conformance.site import Site

from zq.client.http.transport import Request

COUNT = Request("GET", "/jobs/count", safe=True)


def accepted(site: Site) -> int:
    """Connections that the server has accepted so far."""
    return site.server.entrances[0].gate.accepted
