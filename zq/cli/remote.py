"""The options that commands for a server, or for its admin listener, share; their exit codes."""

import sys
import warnings
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

import click

from zq.cli.output import print_json
from zq.cli.terminal import one_line, say

if TYPE_CHECKING:
    from zq.client.backend import Backend
    from zq.client.errors import ZqError
    from zq.client.http.address import Tls


T = TypeVar("T")

_FILE = click.Path(exists=True, dir_okay=False)


class Refused(click.ClickException):
    """The server or the command refuses. Another try would be refused too."""

    exit_code = 1


class NoServer(click.ClickException):
    """No server answers."""

    exit_code = 3


@dataclass
class Remote:
    """The server, and whether the answer is printed as JSON."""

    backend: "Backend"
    as_json: bool
    url: str
    _is_named: bool = False

    def run(self, verb: Coroutine[Any, Any, T]) -> T:
        """Run a verb of the backend. After the first one, say which server has answered."""
        from zq.client.backend import run

        result = run(verb)
        self.tell()
        return result

    def tell(self) -> None:
        """Say which server it is, unless that was said or JSON is wanted."""
        if not self.as_json and not self._is_named:
            self._is_named = True
            tell_server(self.url)


@dataclass(frozen=True)
class ServerAddress:
    """The server in the options and variables of a command. None means the default."""

    url: str | None
    token: str | None
    tls: "Tls"

    @property
    def named(self) -> str:
        """The address that a command uses."""
        from zq.model.urls import DEFAULT_URL

        return self.url.rstrip("/") if self.url else DEFAULT_URL


def tell_server(url: str) -> None:
    """Say on stderr which server a command has asked."""
    say(one_line(f"server: {url}"), err=True)


def addressed(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command a `ServerAddress`, and the options that set it."""

    @_option("--url", help="Address of the server. [default: this machine]")
    @_option("--token", help="Secret of an access key.")
    @_option("--ca", type=_FILE, help="Certificate of the authority that signed the server's.")
    @_option(
        "--client-cert", type=_FILE, help="Certificate of this client, if the server requires one."
    )
    @_option("--client-key", type=_FILE, help="Key of the client certificate.")
    @wraps(command)
    def addressing(
        *args: Any,
        url: str | None,
        token: str | None,
        ca: str | None,
        client_cert: str | None,
        client_key: str | None,
        **rest: Any,
    ) -> None:
        from zq.client.http.address import Tls

        _check_text(click.get_current_context())
        command(*args, server=ServerAddress(url, token, Tls(ca, client_cert, client_key)), **rest)

    return addressing


def _check_text(context: click.Context) -> None:
    """Refuse words that cannot be sent. Names of files may have any bytes."""
    for param in context.command.params:
        value = context.params.get(param.name or "")
        for text in value if isinstance(value, tuple) else (value,):
            try:
                if isinstance(text, str) and not isinstance(param.type, click.Path):
                    text.encode()
            except UnicodeEncodeError:
                raise click.BadParameter("it is no text in UTF-8", context, param) from None


def _option(flag: str, **rest: Any) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """An option and its variable: `--client-key` is ZQ_CLIENT_KEY."""
    variable = "ZQ_" + flag.removeprefix("--").replace("-", "_").upper()
    return click.option(flag, envvar=variable, show_envvar=True, **rest)


def talks(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command a `Remote` and the options that set it. Errors become one line each."""

    @addressed
    @click.option("--json", "as_json", is_flag=True, help="Print JSON, one document on each line.")
    @wraps(command)
    def talking(*args: Any, server: ServerAddress, as_json: bool, **rest: Any) -> None:
        from zq.client.backend import run
        from zq.client.connect import connect
        from zq.client.errors import InvalidOption, ZqError
        from zq.model.errors import InvalidRequest

        with explained():
            backend = connect(server.url, server.token, tls=server.tls, must_exist=True).blocking
            remote = Remote(backend, as_json, server.named)
            try:
                command(*args, remote=remote, **rest)
            except ZqError as error:
                if not isinstance(error, InvalidOption | InvalidRequest) and not is_absent(error):
                    remote.tell()
                raise
            finally:
                run(backend.close())

    return talking


@contextmanager
def explained() -> Iterator[None]:
    """Turn errors of the library into one line on stderr and an exit code."""
    from zq.client.errors import InvalidOption, ZqError
    from zq.model.errors import InvalidRequest

    # An interruption may come between a verb and its first step, which is no fault of the verb.
    warnings.filterwarnings("ignore", "coroutine .* was never awaited", RuntimeWarning)
    try:
        yield
    except (InvalidOption, InvalidRequest) as error:
        raise click.UsageError(error.message) from None
    except ZqError as error:
        raise ending(error) from None


def ending(error: "ZqError", more: str = "") -> click.ClickException:
    """The error that ends a command. `more` follows its message."""
    said = one_line(f"{error.message}{hint(error)}{more}")
    return NoServer(said) if is_absent(error) else Refused(said)


def is_absent(error: "ZqError") -> bool:
    """True if no server answers, as opposed to one that refuses."""
    from zq.client.errors import Unavailable

    return isinstance(error, Unavailable) and error.status is None


def hint(error: "ZqError") -> str:
    """Advice for errors whose message has none."""
    from zq.client.errors import BackendError, JobNotFound

    if isinstance(error, JobNotFound):
        return ": no job has this id, or the job has finished and was not kept"
    if isinstance(error, BackendError) and error.status == 401:
        return " (give the key with --token or ZQ_TOKEN)"
    return ""


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


def one_by_one(
    remote: Remote,
    ids: tuple[str, ...],
    change: Callable[[str], Coroutine[Any, Any, T]],
    tell: Callable[[T], str],
    done: str,
    document: Callable[[T], Any],
) -> None:
    """Change jobs by their ids. One that is refused does not keep the others."""
    from zq.client.errors import ZqError

    refused = 0
    for id in ids:
        try:
            job = remote.run(change(id))
        except ZqError as error:
            if is_absent(error) or len(ids) == 1:
                raise
            refused += 1
            say(one_line(f"{id}: {error.message}{hint(error)}"), err=True)
            continue
        if remote.as_json:
            print_json(document(job))
        else:
            say(tell(job))
    if refused:
        raise Refused(f"{refused} of {len(ids)} jobs were not {done}")


@contextmanager
def spinning(text: str) -> Iterator[None]:
    """Show a spinner on a terminal while the server works."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console
    from rich.text import Text

    with Console(stderr=True).status(Text(text)):
        yield
