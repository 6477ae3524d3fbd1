"""The certificate that a client shows when it connects."""

from aiohttp import web


def certificate_name(request: web.BaseRequest) -> str | None:
    """The common name of the client's verified certificate; None where it has shown none."""
    certificate = request.get_extra_info("peercert") or {}
    for names in certificate.get("subject", ()):
        for field, value in names:
            if field == "commonName":
                return str(value)
    return None
