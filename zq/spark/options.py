"""What `format("zq")` may be told, checked once; picklable, for executors get it too."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

DEFAULT_URL = "http://127.0.0.1:7890"
TABLES = ("history", "jobs", "dead")

KNOWN = (
    *("url", "urls", "token", "table", "after", "until", "recordsPerPartition", "partitions"),
    *("maxRecordsPerBatch", "startingFrom", "onUnavailable", "failOnDataLoss", "pushdown"),
    *("queue", "type", "status", "filter"),
    *("priority", "batchSize", "writeId", "retryFor", "badRows", "dedupeFor"),
)
"""All options. What Spark adds by itself is passed over."""

SPARKS_OWN = ("path", "checkpointlocation", "queryname", "truncate", "numrows")


class SourceError(Exception):
    """The data source cannot do what it was asked for; the message says what to change."""


@dataclass(frozen=True)
class Options:
    """Settings of reads and writes. A secret is never shown: not here, not in an offset."""

    urls: tuple[str, ...]
    token: str | None = field(repr=False)
    table: str
    after: int | None
    until: int | None
    records_per_partition: int
    partitions: int
    max_records_per_batch: int | None
    from_latest: bool
    skip_unavailable: bool
    fail_on_data_loss: bool
    pushdown: bool
    listing: Mapping[str, str]
    """The filters of a listing, as the server takes them; `queue` and `type` also fill in rows that
    are written."""
    priority: int | None
    batch_size: int
    write_id: str | None
    retry_for_s: float
    bad_rows: str | None
    dedupe_for_s: float

    @property
    def url(self) -> str:
        """The one server of what is for one server."""
        if len(self.urls) != 1:
            raise SourceError(f"this is for one server, and urls names {len(self.urls)}: give url")
        return self.urls[0]


def parse(given: Mapping[str, str]) -> Options:
    """The options of a DataFrame's reader or writer. Raises `SourceError`."""
    known = {name.lower() for name in KNOWN}
    for name in given:
        if name.lower() not in known and name.lower() not in SPARKS_OWN:
            raise SourceError(f"unknown option {name!r}, expected one of: {', '.join(KNOWN)}")
    lowered = {name.lower(): value for name, value in given.items()}

    def get(name: str) -> str | None:
        return lowered.get(name.lower()) or None

    def number(name: str, least: int = 0) -> int | None:
        text = get(name)
        if text is None:
            return None
        if not text.isascii() or not text.isdigit() or int(text) < least:
            raise SourceError(f"{name} must be a whole number from {least} on, not {text!r}")
        return int(text)

    def choice(name: str, *choices: str) -> str:
        text = get(name) or choices[0]
        if text not in choices:
            raise SourceError(f"{name} must be {' or '.join(choices)}, not {text!r}")
        return text

    return Options(
        urls=_urls(get("url"), get("urls")),
        token=get("token") or os.environ.get("ZQ_TOKEN") or None,
        table=choice("table", *TABLES),
        after=number("after"),
        until=number("until"),
        records_per_partition=number("recordsPerPartition", 1) or 100_000,
        partitions=number("partitions", 1) or 4,
        max_records_per_batch=number("maxRecordsPerBatch", 1),
        from_latest=choice("startingFrom", "earliest", "latest") == "latest",
        skip_unavailable=choice("onUnavailable", "fail", "skip") == "skip",
        fail_on_data_loss=choice("failOnDataLoss", "true", "false") == "true",
        pushdown=choice("pushdown", "true", "false") == "true",
        listing={
            name: text for name in ("queue", "type", "status", "filter") if (text := get(name))
        },
        priority=number("priority"),
        batch_size=number("batchSize", 1) or 1_000,
        write_id=get("writeId"),
        retry_for_s=float(number("retryFor") or 600),
        bad_rows=get("badRows"),
        dedupe_for_s=float(number("dedupeFor", 1) or 86_400),
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
                f"{each!r} is no address of a server: write {DEFAULT_URL}, or https://…"
            )
        if "@" in parts.netloc or parts.query or parts.fragment:
            # Addresses are written into checkpoints; this text does not repeat the secret.
            raise SourceError(
                f"the address of {parts.hostname} holds more than an address: give a key as token,"
                " or in the variable ZQ_TOKEN"
            )
    return found
