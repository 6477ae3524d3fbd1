"""Texts in the form in which PostgreSQL can store them, and look into their JSON.

It has no NUL, neither as a character nor as an escape of a JSON that it looks into. Connections of
`zq.store.postgres.connection` give back what was sent.
"""

import re
from typing import Any

import msgspec
from psycopg.abc import Buffer
from psycopg.adapt import Loader
from psycopg.pq import Format

ESCAPE = "\uffff"
"""This noncharacter stands before '0' for NUL, before '1' for itself, and before '2' for the escape
that JSON has for NUL."""

_JSON_NUL = "\\u0000"
_JSON_NULS = re.compile(r"(?<!\\)((?:\\\\)*)\\u0000")


def sent(value: str) -> str:
    """A text as PostgreSQL can store it."""
    if "\0" in value or ESCAPE in value:
        value = value.replace(ESCAPE, ESCAPE + "1").replace("\0", ESCAPE + "0")
    if _JSON_NUL in value:
        value = _JSON_NULS.sub(rf"\g<1>{ESCAPE}2", value)
    return value


def shown(value: str) -> str:
    """The text that was sent."""
    if ESCAPE in value:
        value = value.replace(ESCAPE + "0", "\0").replace(ESCAPE + "2", _JSON_NUL)
        return value.replace(ESCAPE + "1", ESCAPE)
    return value


class TextLoader(Loader):
    """Reads texts."""

    def load(self, data: Buffer) -> str:
        """The text that was sent."""
        return shown(str(data, "utf-8"))


class BinaryTextLoader(TextLoader):
    """Reads texts of answers in PostgreSQL's binary form."""

    format = Format.BINARY


def load_json(data: str | bytes) -> Any:
    """The value of a JSON. PostgreSQL may have made it from texts that had a NUL."""
    text = data if isinstance(data, str) else str(data, "utf-8")
    return msgspec.json.decode(shown(text.replace(ESCAPE + "0", _JSON_NUL)))
