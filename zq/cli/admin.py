"""The options that all commands for the admin listener share: its address."""

from collections.abc import Callable
from functools import wraps
from typing import Any

import click

from zq.cli.remote import explained

ADMIN_URL = "http://127.0.0.1:8901"
ASKED = " This command asks the admin listener: --url or ZQ_ADMIN_URL names its address."
"""What users may not know, whose server answers elsewhere."""

_FILE = click.Path(exists=True, dir_okay=False)


def administers(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the `Address` of an admin listener as `admin`, and the options that set it.

    Errors of the library become one line each.
    """

    @_option("--url", "ADMIN_URL", default=ADMIN_URL, help="Address of the admin listener.")
    @_option("--token", "TOKEN", help="Secret of an access key.")
    @_option(
        "--ca-cert",
        "ADMIN_TLS_CA",
        type=_FILE,
        help="Certificate of the authority that signed the server's.",
    )
    @_option(
        "--client-cert",
        "ADMIN_TLS_CLIENT_CERT",
        type=_FILE,
        help="Certificate of this client, if the server requires one.",
    )
    @_option(
        "--client-key", "ADMIN_TLS_CLIENT_KEY", type=_FILE, help="Key of the client certificate."
    )
    @wraps(command)
    def administering(
        *args: Any,
        url: str,
        token: str | None,
        ca_cert: str | None,
        client_cert: str | None,
        client_key: str | None,
        **rest: Any,
    ) -> None:
        from zq.client.http.address import Address, Tls

        with explained(absent=ASKED):
            tls = Tls(ca_cert, client_cert, client_key)
            admin = Address(url.rstrip("/"), token, tls=tls)
            command(*args, admin=admin, **rest)

    return administering


def _option(
    flag: str, variable: str, **rest: Any
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """An option with its variable, which may also have Zizq's name."""
    return click.option(
        flag, envvar=[f"ZQ_{variable}", f"ZIZQ_{variable}"], show_default=True, **rest
    )
