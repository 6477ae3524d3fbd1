"""`zq tls`: makes an authority of your own, and certificates for the server and its clients."""

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeVar

import click

from zq.cli.ending import require_directory
from zq.cli.terminal import say
from zq.config import SETTINGS
from zq.model.keys import InvalidKey, check_key_name
from zq.setting import variable_given

if TYPE_CHECKING:
    from zq.cli.certificates import Authority, Pair

F = TypeVar("F", bound=Callable[..., Any])

LOCAL = ("localhost", "127.0.0.1", "::1")
CA_NAME = "zq authority"
MOST_DAYS = 36_500


def _options(*options: Callable[[F], F]) -> Callable[[F], F]:
    def add(command: F) -> F:
        for option in reversed(options):
            command = option(command)
        return command

    return add


_days = click.IntRange(1, MOST_DAYS)
_san = click.option(
    "--san",
    "sans",
    multiple=True,
    metavar="NAME",
    default=LOCAL,
    help="Name or address by which clients reach the server; repeatable. [default: this machine]",
)
_leaf_days = click.option(
    "--days",
    type=_days,
    default=365,
    show_default=True,
    help="Days for which the certificate is valid.",
)
_ca_days = click.option(
    "--ca-days",
    type=_days,
    default=3650,
    show_default=True,
    help="Days for which the authority is valid.",
)
_where = _options(
    click.option("--root-dir", type=click.Path(path_type=Path), help="The server's --root-dir."),
    click.option(
        "--out-dir",
        type=click.Path(path_type=Path),
        help="Directory for the files. [default: tls in the root directory]",
    ),
    click.option("--overwrite", is_flag=True, help="Replace existing files."),
)
_authority = _options(
    click.option(
        "--ca-cert",
        type=click.Path(path_type=Path),
        help="Certificate of the authority. [default: ca-cert.pem in that directory]",
    ),
    click.option(
        "--ca-key",
        type=click.Path(path_type=Path),
        help="Key of the authority. [default: ca-key.pem in that directory]",
    ),
)


@click.group(
    short_help="Make an authority, and certificates for servers and clients.",
    epilog="""\b
Examples:
  zq tls init --san queue.example.org --client worker-1
  zq serve --tls-cert zq-root/tls/server-cert.pem --tls-key zq-root/tls/server-key.pem \\
      --tls-client-ca zq-root/tls/ca-cert.pem
  zq tls client-cert --name worker-2

Existing files are kept. Keep ca-key.pem secret: whoever has it can pose as any client.
""",
)
def tls() -> None:
    """Make an authority, and certificates for the server and its clients."""


@tls.command(
    epilog="""\b
Examples:
  zq tls init
  zq tls init --san queue.example.org --san 10.0.0.7 --client worker-1
"""
)
@_san
@click.option("--cn", help="Common name of the server. [default: the first --san]")
@click.option(
    "--client", "clients", multiple=True, metavar="NAME", help="Name of a client; repeatable."
)
@_leaf_days
@_ca_days
@_where
def init(
    sans: tuple[str, ...],
    cn: str | None,
    clients: tuple[str, ...],
    days: int,
    ca_days: int,
    root_dir: Path | None,
    out_dir: Path | None,
    overwrite: bool,
) -> None:
    """Make all certificates: authority, server and, with --client, clients."""
    files = _Files(root_dir, out_dir, overwrite)
    for name in clients:
        _check_client(name)
    files.put("ca", lambda made: made.make_authority(CA_NAME, ca_days))
    signer = files.authority(None, None)
    files.put("server", lambda made: made.make_server(signer, cn or sans[0], sans, days))
    for name in clients:
        _put_client(files, signer, name, name, days)


@tls.command(
    epilog="""\b
Examples:
  zq tls ca --out-dir /etc/zq/tls
"""
)
@click.option("--cn", default=CA_NAME, show_default=True, help="Common name of the authority.")
@click.option("--days", "--ca-days", type=_days, default=3650, show_default=True)
@_where
def ca(cn: str, days: int, root_dir: Path | None, out_dir: Path | None, overwrite: bool) -> None:
    """Make an authority: ca-cert.pem and ca-key.pem."""
    files = _Files(root_dir, out_dir, overwrite)
    files.put("ca", lambda made: made.make_authority(cn, days))


@tls.command(
    "server-cert",
    epilog="""\b
Examples:
  zq tls server-cert --san queue.example.org --overwrite
""",
)
@_san
@click.option("--cn", help="Common name. [default: the first --san]")
@_leaf_days
@_authority
@_where
def server_cert(
    sans: tuple[str, ...],
    cn: str | None,
    days: int,
    ca_cert: Path | None,
    ca_key: Path | None,
    root_dir: Path | None,
    out_dir: Path | None,
    overwrite: bool,
) -> None:
    """Sign a server's certificate: server-cert.pem and server-key.pem."""
    files = _Files(root_dir, out_dir, overwrite)
    signer = files.authority(ca_cert, ca_key)
    files.put("server", lambda made: made.make_server(signer, cn or sans[0], sans, days))


@tls.command(
    "client-cert",
    epilog="""\b
Examples:
  zq tls client-cert --name worker-2 --days 30
""",
)
@click.option("--name", required=True, help="Name of the files, and of the key in `zq keys`.")
@click.option("--cn", help="Common name. [default: the --name]")
@_leaf_days
@_authority
@_where
def client_cert(
    name: str,
    cn: str | None,
    days: int,
    ca_cert: Path | None,
    ca_key: Path | None,
    root_dir: Path | None,
    out_dir: Path | None,
    overwrite: bool,
) -> None:
    """Sign a client's certificate: client-NAME-cert.pem and client-NAME-key.pem."""
    _check_client(name)
    files = _Files(root_dir, out_dir, overwrite)
    _put_client(files, files.authority(ca_cert, ca_key), name, cn or name, days)


class _Files:
    """The directory for the files."""

    def __init__(self, root_dir: Path | None, out_dir: Path | None, overwrite: bool) -> None:
        self._directory = out_dir or _root(root_dir) / "tls"
        require_directory(self._directory)
        self._overwrite = overwrite

    def put(self, name: str, make: "Callable[[ModuleType], Pair]") -> None:
        """Write a certificate and its key, unless they exist."""
        made = _certificates()
        paths = self._paths(name)
        there = [path for path in paths if path.exists()]
        if there and not self._overwrite:
            if len(there) < len(paths):
                raise click.ClickException(
                    f"{there[0]} exists but its counterpart does not: use --overwrite to replace it"
                )
            for path in there:
                say(f"skip: {path} (already exists)")
            return
        try:
            pair = make(made)
            self._directory.mkdir(parents=True, exist_ok=True)
            for path, text, mode in zip(paths, pair, (0o644, 0o600), strict=True):
                _write(path, text, mode)
                say(f"wrote: {path}")
        except (OSError, ValueError) as error:
            raise click.ClickException(f"{paths[0]}: {error}") from None

    def authority(self, certificate: Path | None, key: Path | None) -> "Authority":
        """The authority that signs, from the named files or from this directory's."""
        made = _certificates()
        own_certificate, own_key = self._paths("ca")
        paths = certificate or own_certificate, key or own_key
        try:
            texts = [path.read_bytes() for path in paths]
            authority: Authority = made.read_authority(made.Pair(*texts))
        except FileNotFoundError as error:
            raise click.ClickException(
                f"{error.filename} does not exist: make an authority with `zq tls ca`, or name one"
                " with --ca-cert and --ca-key"
            ) from None
        except (OSError, ValueError, TypeError) as error:
            shown = " and ".join(map(str, paths))
            raise click.ClickException(f"{shown} are not an authority: {error}") from None
        return authority

    def _paths(self, name: str) -> tuple[Path, Path]:
        return self._directory / f"{name}-cert.pem", self._directory / f"{name}-key.pem"


def _put_client(files: _Files, signer: "Authority", name: str, cn: str, days: int) -> None:
    files.put(f"client-{name}", lambda made: made.make_client(signer, cn, days))


def _check_client(name: str) -> None:
    try:
        check_key_name(name)
    except InvalidKey as error:
        raise click.ClickException(str(error)) from None


def _write(path: Path, text: bytes, mode: int) -> None:
    with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
        try:
            file.write(text)
            os.fchmod(file.fileno(), mode)
            Path(file.name).replace(path)
        except BaseException:
            Path(file.name).unlink()
            raise


def _root(given: Path | None) -> Path:
    (setting,) = (setting for setting in SETTINGS if setting.name == "root_dir")
    variable = variable_given(setting.variable, os.environ)
    return given or Path(variable[1] if variable else setting.default)


def _certificates() -> ModuleType:
    try:
        from zq.cli import certificates
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != "cryptography":
            raise
        raise click.ClickException(
            "zq tls needs the package cryptography: pip install 'zq-queue[tls]'"
        ) from None
    return certificates
