"""`zq keys`: edits the file of access keys that `zq serve --keys` reads."""

import os
import secrets
from collections.abc import Sequence
from pathlib import Path

import click

from zq import keyfile
from zq.cli.drawing import tabled
from zq.cli.output import print_json, print_table
from zq.cli.terminal import say
from zq.cli.words import NAMES
from zq.model.keys import QUOTA, InvalidKey, Key, KeyScope, digest_of, make_key
from zq.model.reach import EVERYWHERE
from zq.setting import variable_given

SECRET_BYTES = 32
RELOAD = "A running server reads the file again on SIGHUP: kill -HUP PID, or systemctl reload zq"

_file = click.option(
    "--keys",
    "path",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="The key file. [ZQ_KEYS]",
)
_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


@click.group(
    epilog="""\b
Examples:
  zq keys add shop --scopes enqueue,read --prefix shop- --keys /etc/zq/keys
  zq keys add worker-1 --scopes take --certificate --keys /etc/zq/keys
  zq keys list --keys /etc/zq/keys
  zq keys revoke shop --keys /etc/zq/keys

A key may have these scopes: enqueue stores jobs; take receives and settles them; read looks at
them; manage changes and deletes them and, without a prefix, resets the server; history, which takes
no prefix, reads what became of them. No scope includes another.
"""
)
def keys() -> None:
    """Add, list and revoke access keys.

    Keys are kept in the file that `zq serve --keys FILE` reads. ZQ_KEYS can name the file instead.
    """


@keys.command(
    epilog="""\b
Examples:
  zq keys add shop --scopes enqueue,read --prefix shop-,orders-
  zq keys add ops --scopes read,manage --json
"""
)
@click.argument("name")
@click.option(
    "--scopes", required=True, metavar="LIST", help=f"What the key allows: {', '.join(KeyScope)}."
)
@click.option(
    "--prefix",
    type=NAMES,
    default=(),
    metavar="LIST",
    help="Allow only queues whose names begin with this. [default: all]",
)
@click.option(
    "--budgets",
    type=click.IntRange(0, 9_999_999),
    help="How many budgets the key may make. [default: an eighth of the server's --max-budgets]",
)
@click.option(
    "--certificate",
    is_flag=True,
    help="Make a key without a secret, for clients whose certificate has NAME as CN.",
)
@_file
@_json
def add(
    name: str,
    scopes: str,
    prefix: tuple[str, ...],
    budgets: int | None,
    certificate: bool,
    path: Path | None,
    as_json: bool,
) -> None:
    """Make a key called NAME, and print its secret. It is printed only once."""
    file = _path(path)
    secret = None if certificate else secrets.token_urlsafe(SECRET_BYTES)
    digest = None if secret is None else digest_of(secret.encode())
    try:
        scopes += "" if budgets is None else f",{QUOTA}{budgets}"
        key = make_key(name, digest, scopes, prefix)
        keyfile.add(file, key)
    except InvalidKey as error:
        raise click.ClickException(str(error)) from None
    if as_json:
        print_json(_document(key) | {"secret": secret})
        return
    if secret is None:
        say(f"{name} is for clients whose certificate has CN={name}.")
    else:
        say(secret)
        say("")
        say(f"This is the secret of {name}. It is stored nowhere: note it now.")
        say("Send it as: Authorization: Bearer SECRET")
    say(RELOAD)


@keys.command(
    "list",
    epilog="""\b
Examples:
  zq keys list --keys /etc/zq/keys
  ZQ_KEYS=/etc/zq/keys zq keys list --json
""",
)
@tabled
@_file
@_json
def list_(path: Path | None, as_json: bool) -> None:
    """Show the keys. The file does not hold their secrets."""
    try:
        found = keyfile.read(_path(path)).keys
    except InvalidKey as error:
        raise click.ClickException(str(error)) from None
    if as_json:
        print_json([_document(key) for key in found])
        return
    print_table(("NAME", "SCOPES", "QUEUES", "BY"), map(_row, found), least=("BY",))


@keys.command(
    epilog="""\b
Examples:
  zq keys revoke shop --keys /etc/zq/keys
"""
)
@click.argument("name")
@_file
@_json
def revoke(name: str, path: Path | None, as_json: bool) -> None:
    """Remove the key called NAME from the file."""
    try:
        keyfile.revoke(_path(path), name)
    except InvalidKey as error:
        raise click.ClickException(str(error)) from None
    if as_json:
        print_json({"revoked": name})
    else:
        say(f"{name} is revoked. {RELOAD}. The streams of this key end then.")


def _path(path: Path | None) -> Path:
    given = variable_given("ZQ_KEYS", os.environ)
    if path is not None:
        return path
    if given is None:
        raise click.UsageError("name the key file with --keys FILE or the variable ZQ_KEYS")
    return Path(given[1])


def _document(key: Key) -> dict[str, object]:
    """A key as JSON. If `prefixes` is null, the key is for all queues."""
    return {
        "name": key.name,
        "scopes": _scopes(key),
        "prefixes": None if key.reach is EVERYWHERE else key.reach.prefixes,
        "budgets": key.budgets,
        "certificate_only": key.digest is None,
    }


def _row(key: Key) -> Sequence[str]:
    queues = "all" if key.reach is EVERYWHERE else ",".join(f"{p}*" for p in key.reach.prefixes)
    quota = [] if key.budgets is None else [f"{QUOTA}{key.budgets}"]
    by = "certificate" if not key.digest else "secret"
    return key.name, ",".join([*_scopes(key), *quota]), queues, by


def _scopes(key: Key) -> list[str]:
    return [scope for scope in KeyScope if scope in key.scopes]
