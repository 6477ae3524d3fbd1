"""What all commands that talk to a server share: its address, and how they end."""

from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

import click

from zq.cli.terminal import one_line

if TYPE_CHECKING:
    from zq.client.backend import Backend
    from zq.client.errors import ZqError
    from zq.client.transport import Tls

T = TypeVar("T")

_FILE = click.Path(exists=True, dir_okay=False)


class Refused(click.ClickException):
    """It did not work, and would not work any better if nothing changes."""

    exit_code = 1


class NoServer(click.ClickException):
    """Nobody is there."""

    exit_code = 3


@dataclass(frozen=True)
class Remote:
    """The server, and whether a script reads the answer."""

    backend: "Backend"
    as_json: bool

    def run(self, verb: Coroutine[Any, Any, T]) -> T:
        """What a verb of the backend answers."""
        from zq.client.sync import run

        return run(verb)


@dataclass(frozen=True)
class Server:
    """Which server the options and variables of a command name; what is None is the default."""

    url: str | None
    token: str | None
    tls: "Tls"


def addressed(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command a `Server`, and the options that say which."""

    @_option("--url", help="The server; default: here.")
    @_option("--token", help="Secret of an access key.")
    @_option("--ca", type=_FILE, help="Authority of https.")
    @_option("--client-cert", type=_FILE, help="Certificate to show to a server that wants one.")
    @_option("--client-key", type=_FILE, help="The key of that.")
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
        from zq.client.transport import Tls

        command(*args, server=Server(url, token, Tls(ca, client_cert, client_key)), **rest)

    return addressing


def _option(flag: str, **rest: Any) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """An option and its variable: `--client-key` is ZQ_CLIENT_KEY."""
    variable = "ZQ_" + flag.removeprefix("--").replace("-", "_").upper()
    return click.option(flag, envvar=variable, show_envvar=True, **rest)


def talks(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command a `Remote`, the options that say which, and its errors as one line each."""

    @addressed
    @click.option("--json", "as_json", is_flag=True, help="Print JSON, one document a line.")
    @wraps(command)
    def talking(*args: Any, server: Server, as_json: bool, **rest: Any) -> None:
        from zq.client.connect import connect

        with explained():
            backend = connect(server.url, server.token, tls=server.tls, must_exist=True).blocking
            remote = Remote(backend, as_json)
            try:
                command(*args, remote=remote, **rest)
            finally:
                remote.run(backend.close())

    return talking


@contextmanager
def explained() -> Iterator[None]:
    """Errors of the library as one line on stderr, and an exit code."""
    from zq.client.errors import InvalidOption, ZqError
    from zq.model.errors import InvalidRequest

    try:
        yield
    except (InvalidOption, InvalidRequest) as error:
        raise click.UsageError(error.message) from None
    except ZqError as error:
        raise ending(error) from None


def ending(error: "ZqError", more: str = "") -> click.ClickException:
    """How a command ends over an error; `more` is said after it."""
    said = one_line(f"{error.message}{hint(error)}{more}")
    return NoServer(said) if is_absent(error) else Refused(said)


def is_absent(error: "ZqError") -> bool:
    """Whether there is no server, rather than one that refuses."""
    from zq.client.errors import Unavailable

    return isinstance(error, Unavailable) and error.status is None


def hint(error: "ZqError") -> str:
    """What to do about errors whose text does not say it."""
    from zq.client.errors import BackendError, JobNotFound

    if isinstance(error, JobNotFound):
        return ": there is none with this id, or it is finished and was not kept"
    if isinstance(error, BackendError) and error.status == 401:
        return " (the key of this command is that of --token, or ZQ_TOKEN)"
    return ""
