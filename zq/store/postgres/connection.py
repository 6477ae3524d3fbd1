"""Connections to PostgreSQL: their settings, and what their errors mean."""

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from socket import SHUT_RDWR, socket
from urllib.parse import quote, urlencode

import psycopg
from psycopg import errors
from psycopg.conninfo import make_conninfo
from psycopg.pq import Conninfo
from psycopg.types.json import set_json_loads

from zq.model.addresses import PORTS, SPLIT, UNREADABLE
from zq.store.errors import ForeignDatabase, RowsDiffer, StoreAway, StoreBusy, StoreError, StoreFull
from zq.store.postgres.texts import BinaryTextLoader, TextLoader, load_json

Connection = psycopg.Connection[tuple[object, ...]]

SCHEMA = "zq"
"""All tables are in this schema of the database."""

SESSION = {
    "search_path": SCHEMA,
    "application_name": "zq",
    # A server that dies without a word is noticed in 8 seconds, not in two hours.
    "tcp_keepalives_idle": "5",
    "tcp_keepalives_interval": "1",
    "tcp_keepalives_count": "3",
    "tcp_user_timeout": "8000",
    # Times and texts do not depend on the server's settings.
    "timezone": "UTC",
    "client_encoding": "UTF8",
    "default_transaction_isolation": "read committed",
    "jit": "off",
    # Those that a role has by its hoster's choice would end statements, and connections at rest.
    "statement_timeout": "0",
    "lock_timeout": "0",
    "idle_session_timeout": "0",
    "idle_in_transaction_session_timeout": "0",
}

SINCE_17 = "SET transaction_timeout = 0"
"""Turns off the one such timeout that PostgreSQL before 17 does not know."""

ADDRESS = {
    # A server of PostgreSQL that dies without a word is noticed in as many seconds.
    "keepalives_idle": "5",
    "keepalives_interval": "1",
    "keepalives_count": "3",
    "tcp_user_timeout": "8000",
    # Of several hosts, it is this one: a standby takes no changes until it is promoted.
    "target_session_attrs": "primary",
}
"""What an address has if it says nothing else."""

PLANS = {
    # Each statement has one plan, whatever the statistics say: rows are looked up by an index.
    "plan_cache_mode": "force_generic_plan",
    "enable_seqscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
    "enable_bitmapscan": "off",
    "enable_material": "off",
    "enable_memoize": "off",
    "enable_hashagg": "off",
    "enable_incremental_sort": "off",
    "enable_sort": "off",
}

TICK_SESSION = {
    # Acknowledged means committed.
    "synchronous_commit": "on",
    # Who holds a table's lock for longer is told of, and changes are refused meanwhile.
    "lock_timeout": "2s",
    **PLANS,
}

SECRET = b"*"
"""How libpq marks what is not to be shown."""

STATEMENTS = 512
"""How many statements stay prepared: a tick has many."""

_AGAIN = (errors.SerializationFailure, errors.DeadlockDetected, errors.LockNotAvailable)
"""Nothing was changed, and the whole transaction may be tried again."""

_FULL = (errors.DiskFull, errors.OutOfMemory)


POOLER = (
    "a pooler answers there, which takes locks and settings away from a connection: give the"
    " address of PostgreSQL itself"
)


REFUSALS = (
    (r'database "[^"]*" does not exist', "create it with `createdb --encoding UTF8`"),
    (r'role "[^"]*" does not exist', "create it with `createuser`, or name another user"),
    (r"authentication failed|no password supplied", "see PGPASSWORD, PGPASSFILE and pg_hba.conf"),
    ("no pg_hba.conf entry", "add a line for this host, user and database to pg_hba.conf"),
    ("is not permitted to log in", "ALTER ROLE … LOGIN lets it"),
    ("permission denied for database", "GRANT CONNECT, CREATE ON DATABASE lets the user in"),
)
"""What PostgreSQL says to whom it does not let in, and what changes that. It gives no code then, so
a server of another language is not understood: its words are told all the same."""


def connect_first(address: str, settings: Mapping[str, str]) -> Connection:
    """Like `connect`, for a start: the address may be wrong.

    Raises `ForeignDatabase` with what to do if PostgreSQL does not let this user in, and
    `StoreAway` if nobody answers, or not yet.
    """
    try:
        return connect(address, settings)
    except StoreAway as error:
        said = str(error.__cause__).strip()
        for refusal, remedy in REFUSALS:
            if re.search(refusal, said):
                raise ForeignDatabase(f"{said}: {remedy}") from None
        raise StoreAway(f"PostgreSQL cannot be reached: {said}") from error


def connect(address: str, settings: Mapping[str, str], seconds: int = 10) -> Connection:
    """Open a connection with the settings of a session, within some time. Raises `StoreError`."""
    # A backslash keeps a space within a value.
    values = {name: value.replace(" ", "\\ ") for name, value in settings.items()}
    options = " ".join(f"-c {name}={value}" for name, value in values.items())
    with store_errors():
        connection = psycopg.connect(
            make_conninfo(**ADDRESS | _parameters(address)),
            autocommit=True,
            options=options,
            connect_timeout=seconds,
            cursor_factory=psycopg.RawCursor,
        )
        if connection.info.server_version >= 170_000:
            connection.execute(SINCE_17)
    set_json_loads(load_json, connection)
    for loader in (TextLoader, BinaryTextLoader):
        connection.adapters.register_loader("text", loader)
    connection.prepare_threshold = 0
    connection.prepared_max = STATEMENTS
    return connection


def shown(address: str) -> str:
    """An address for people, who may give it back: without passwords, and with all else."""
    try:
        found = _parameters(address, secrets=False)
    except ForeignDatabase:
        return "postgresql://…"
    user, name = (quote(found.pop(key, ""), safe="") for key in ("user", "dbname"))
    place = ""
    if not re.search("[/:,@]", found.get("host", "")):
        port = found.pop("port", "")
        place = found.pop("host", "") + (port and f":{port}")
    rest = urlencode(found, safe="/,", quote_via=quote)
    return f"postgresql://{user and f'{user}@'}{place}/{name}{rest and f'?{rest}'}"


def _parameters(address: str, *, secrets: bool = True) -> dict[str, str]:
    """What an address says, by the names of libpq.

    Raises `ForeignDatabase` if it cannot be read. There may be a password anywhere in it then, so
    nothing of it is told, as libpq would.
    """
    try:
        options = Conninfo.parse(address.encode())
    except psycopg.Error:
        raise ForeignDatabase(UNREADABLE) from None
    found = {
        option.keyword.decode(): option.val.decode()
        for option in options
        if option.val is not None and (secrets or option.dispchar != SECRET)
    }
    if not (SPLIT.fullmatch(address) and PORTS.fullmatch(found.get("port", ""))):
        raise ForeignDatabase(UNREADABLE)
    return found


def cut(connection: Connection) -> None:
    """End a connection that another thread uses, and that may be silent. Nothing is waited for.

    That thread gets an error. PostgreSQL ends what it does for it by itself.
    """
    with suppress(OSError, psycopg.Error), socket(fileno=os.dup(connection.fileno())) as end:
        end.shutdown(SHUT_RDWR)


def store_error(error: psycopg.Error) -> StoreError | ForeignDatabase:
    """Translate an error of PostgreSQL or of the connection into the store's own."""
    if isinstance(error, _AGAIN):
        return StoreBusy(str(error))
    if isinstance(error, _FULL):
        return StoreFull(str(error))
    if "unsupported startup parameter" in str(error):
        return ForeignDatabase(POOLER)
    if _is_loss(error):
        return StoreAway(f"the connection to PostgreSQL is lost: {str(error).strip()}")
    if isinstance(error, errors.DivisionByZero):
        # `zq.store.postgres.transaction` lets statements fail so that change other rows.
        return RowsDiffer()
    return StoreError(str(error))


def _is_loss(error: psycopg.Error) -> bool:
    """True if the connection ends with an error, and not a statement alone."""
    if error.sqlstate is None:  # from libpq, and not from PostgreSQL
        return isinstance(error, psycopg.OperationalError | psycopg.InterfaceError)
    severity = error.diag.severity_nonlocalized
    return error.sqlstate.startswith("08") or severity in ("FATAL", "PANIC")


@contextmanager
def store_errors() -> Iterator[None]:
    """Raise the errors of PostgreSQL as the store's own within the block."""
    try:
        yield
    except psycopg.Error as error:
        raise store_error(error) from error
