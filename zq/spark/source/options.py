"""The options of `format("zq")`, checked once, and picklable for executors."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from zq.client.http.address import Address, Tls
from zq.features.history.model import OUTCOMES
from zq.spark.errors import SourceError

DEFAULT_URL = "http://127.0.0.1:7890"
SELECTING = {
    "history": ("queue", "type", "outcome", "finishedSince", "finishedBefore", "after", "until"),
    "jobs": ("queue", "type", "status", "filter"),
    "dead": ("queue", "type", "filter"),
}
"""Table → the options that select its rows.

Only options leave rows out at the source. It accepts no filters from Spark, since Spark may plan
the scan of a DataFrame once for several queries, and a filter would then give all of them the rows
of one."""

LISTS = ("queue", "type", "status", "outcome")
"""The options that name columns. Each lists names with commas; a row must have one."""

KNOWN = (
    *("url", "urls", "token", "table", "recordsPerPartition", "partitions"),
    *("maxRecordsPerBatch", "startingFrom", "onUnavailable", "failOnDataLoss"),
    *dict.fromkeys(name for names in SELECTING.values() for name in names),
    *("priority", "batchSize", "writeId", "retryFor", "badRows", "orderBy"),
)
"""All options. Spark adds `SPARKS_OWN` itself; these are ignored."""

SPARKS_OWN = ("path", "checkpointlocation", "queryname", "truncate", "numrows")


@dataclass(frozen=True)
class SourceOptions:
    """Settings of reads and writes. Neither this nor an offset ever shows a secret."""

    urls: tuple[str, ...]
    token: str | None = field(repr=False)
    table: str
    after: int | None
    until: int | None
    finished_since: int | None
    finished_before: int | None
    filters: Mapping[str, str]
    """`LISTS` and `filter`, in the form of the server's listing. In writes, `queue` and `type` are
    for rows that do not name them."""
    records_per_partition: int
    partitions: int
    max_records_per_batch: int | None
    from_latest: bool
    skip_unavailable: bool
    fail_on_data_loss: bool
    priority: int | None
    batch_size: int
    write_id: str | None
    retry_for_s: float
    bad_rows: str | None
    order_by: str | None
    """The column, or `struct.field`, by which a task of a write sends its rows."""

    @property
    def url(self) -> str:
        """The server of reads and writes that are for one server. Raises `SourceError`."""
        if len(self.urls) != 1:
            raise SourceError(f"this is for one server, and urls names {len(self.urls)}: give url")
        return self.urls[0]

    @property
    def address(self) -> Address:
        """This server with its key, and with the files of the environment for TLS."""
        return Address(self.url, self.token, tls=Tls.of_environment())


class _Given:
    """Options from Spark: texts, with names in any case."""

    def __init__(self, given: Mapping[str, str]) -> None:
        known = {name.lower() for name in KNOWN}
        for name in given:
            if name.lower() not in known and name.lower() not in SPARKS_OWN:
                raise SourceError(f"unknown option {name!r}, expected one of: {', '.join(KNOWN)}")
        self._texts = {name.lower(): value for name, value in given.items()}

    def text(self, name: str) -> str | None:
        return self._texts.get(name.lower()) or None

    def number(self, name: str, least: int = 0) -> int | None:
        text = self.text(name)
        if text is None:
            return None
        if not text.isascii() or not text.isdigit() or int(text) < least:
            raise SourceError(f"{name} must be a whole number from {least} on, not {text!r}")
        return int(text)

    def choice(self, name: str, *choices: str) -> str:
        text = self.text(name) or choices[0]
        if text not in choices:
            raise SourceError(f"{name} must be {' or '.join(choices)}, not {text!r}")
        return text

    def selecting(self, table: str) -> dict[str, str]:
        """The options that select rows of the table. Raises `SourceError` for options of other
        tables, and for empty options, which would select everything."""
        found: dict[str, str] = {}
        for name in dict.fromkeys(name for names in SELECTING.values() for name in names):
            text = self._texts.get(name.lower())
            if text is None:
                continue
            if name not in SELECTING[table]:
                raise SourceError(
                    f"{name} selects nothing from the table {table}, but these do: "
                    + ", ".join(SELECTING[table])
                )
            if not text or (name in LISTS and not all(text.split(","))):
                raise SourceError(f"{name} is empty: leave it out where any value will do")
            found[name] = text
        return found


def parse(options: Mapping[str, str]) -> SourceOptions:
    """The options of a DataFrame's reader or writer. Raises `SourceError`."""
    given = _Given(options)
    retry_for = given.number("retryFor")
    table = given.choice("table", *SELECTING)
    selecting = given.selecting(table)
    for outcome in selecting.get("outcome", OUTCOMES[0]).split(","):
        if outcome not in OUTCOMES:
            raise SourceError(f"outcome must be of {', '.join(OUTCOMES)}, not {outcome!r}")
    return SourceOptions(
        urls=_urls(given.text("url"), given.text("urls")),
        token=given.text("token") or os.environ.get("ZQ_TOKEN") or None,
        table=table,
        after=given.number("after"),
        until=given.number("until"),
        finished_since=given.number("finishedSince"),
        finished_before=given.number("finishedBefore"),
        filters={name: selecting[name] for name in (*LISTS, "filter") if name in selecting},
        records_per_partition=given.number("recordsPerPartition", 1) or 100_000,
        partitions=given.number("partitions", 1) or 4,
        max_records_per_batch=given.number("maxRecordsPerBatch", 1),
        from_latest=given.choice("startingFrom", "earliest", "latest") == "latest",
        skip_unavailable=given.choice("onUnavailable", "fail", "skip") == "skip",
        fail_on_data_loss=given.choice("failOnDataLoss", "true", "false") == "true",
        priority=given.number("priority"),
        batch_size=given.number("batchSize", 1) or 1_000,
        write_id=given.text("writeId"),
        retry_for_s=600.0 if retry_for is None else float(retry_for),
        bad_rows=given.text("badRows"),
        order_by=given.text("orderBy"),
    )


def _urls(url: str | None, urls: str | None) -> tuple[str, ...]:
    if url and urls:
        raise SourceError("give url or urls, not both")
    listed = (urls or url or os.environ.get("ZQ_URL") or DEFAULT_URL).split(",")
    found = tuple(dict.fromkeys(text.strip().rstrip("/") for text in listed if text.strip()))
    for each in found:
        parts = urlsplit(each)
        if parts.scheme not in ("http", "https") or not parts.netloc:
            raise SourceError(
                f"{each!r} is not the address of a server: write {DEFAULT_URL}, or https://…"
            )
        if "@" in parts.netloc or parts.query or parts.fragment:
            # Checkpoints hold addresses, so neither an address nor this message may contain a
            # secret.
            raise SourceError(
                f"the address of {parts.hostname} holds more than an address: give a key as token,"
                " or in the variable ZQ_TOKEN"
            )
    return found
