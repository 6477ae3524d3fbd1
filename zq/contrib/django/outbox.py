"""The outbox in Django's database: writes rows, finds them, and has the relay's address."""

from contextlib import suppress
from typing import Any
from urllib.parse import quote, urlencode

from zq.client.errors import InvalidPayload
from zq.client.formats import JSON
from zq.client.values import StoredJob, Submission
from zq.outbox.adapters import adapter_of
from zq.outbox.writing import document_of, job_of

VENDORS = ("sqlite", "postgresql")
"""Databases for which there is an outbox."""

# A row that is no JSON must not stop the look at the others, so the database parses none. It looks
# for text, apart from spaces: other programs may put some between the parts.
_FIND = """\
SELECT document FROM zq_outbox
WHERE replace(replace(document, ' ', ''), %s, '') <> replace(document, ' ', '')"""


def write(connection: Any, job: Submission) -> None:
    """Write a row in the transaction of the connection."""
    adapter_of(connection).write(connection, JSON.encode([document_of(job)]).decode())


def find(connection: Any, key: str) -> StoredJob | None:
    """The job of a row that no relay has moved yet."""
    text = f'"unique_key":{JSON.encode(key).decode()}'.replace(" ", "")
    with connection.cursor() as cursor:
        cursor.execute(_FIND, [text])
        rows = cursor.fetchall()
    for (document,) in rows:
        with suppress(InvalidPayload):
            job = job_of(document)
            if job.unique_key == key:
                return StoredJob(
                    *("", job.type, job.queue, "ready", job.priority or 0),
                    payload=job.payload,
                    meta=job.meta,
                )
    return None


def address_of(connection: Any) -> str:
    """The address of Django's database for a relay."""
    said = connection.settings_dict
    if connection.vendor == "sqlite":
        return f"sqlite://{said['NAME']}"
    user = quote(said["USER"] or "", safe="")
    password = f":{quote(said['PASSWORD'], safe='')}" if said["PASSWORD"] else ""
    parts = {"host": said["HOST"], "port": said["PORT"]} | _options_of(said)
    query = urlencode({name: value for name, value in parts.items() if value}, quote_via=quote)
    at = f"{user}{password}@" if user else ""
    return f"postgresql://{at}/{quote(said['NAME'] or '', safe='')}" + (
        f"?{query}" if query else ""
    )


def _options_of(said: dict[str, Any]) -> dict[str, Any]:
    """The options of the connection that PostgreSQL's own library knows. The rest is Django's."""
    options: dict[str, Any] = said.get("OPTIONS") or {}
    if not options:
        return {}
    from psycopg.pq import Conninfo

    known = {each.keyword.decode() for each in Conninfo.get_defaults()}
    return {name: value for name, value in options.items() if name in known}
