"""The options that all commands for the admin listener share: the address of its server."""

from collections.abc import Callable
from functools import wraps
from typing import Any

import click

from zq.cli.remote import ServerAddress, addressed, explained, tell_server


def administers(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the `Address` of a server's admin listener as `admin`, and the options for it.

    The server says where the listener is. Errors of the library become one line each.
    """

    @addressed
    @click.option(
        "--admin-url",
        envvar=["ZQ_ADMIN_URL", "ZIZQ_ADMIN_URL"],
        show_envvar=True,
        help="Address of the admin listener, such as the end of a tunnel. [default: the server"
        " tells it]",
    )
    @wraps(command)
    def administering(
        *args: Any, server: ServerAddress, admin_url: str | None, **rest: Any
    ) -> None:
        from zq.client.http.address import Address
        from zq.client.http.maintenance import admin_of

        url = admin_url.rstrip("/") if admin_url else _asked(server.named)
        with explained():
            address = Address(url, server.token, tls=server.tls)
            admin = address if admin_url else admin_of(address)
            if not rest.get("as_json"):
                via = "" if url == admin.url else f", by its admin listener {admin.url}"
                tell_server(url + via)
            command(*args, admin=admin, **rest)

    return administering


def _asked(url: str) -> str:
    """The address of a server. Raises `UsageError` for a directory."""
    if url.startswith("sqlite:"):
        raise click.UsageError(
            f"this command asks a running server, and {url} names a directory: write the address"
            " of its server, such as --url http://127.0.0.1:7890"
        )
    return url
