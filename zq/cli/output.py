"""Prints answers: as tables for people, as aligned text in pipes, as JSON for scripts."""

import time
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import msgspec

from zq.cli.drawing import Cells, draw, is_whole
from zq.cli.terminal import one_line, say, say_json

if TYPE_CHECKING:
    from zq.client.values import StoredJob

LONGEST_TEXT = 60
"""The most characters of a payload or an error in a table."""

_AGES = ((86_400_000, "d"), (3_600_000, "h"), (60_000, "m"), (1000, "s"))

Row = Sequence[object]


def print_json(value: Any) -> None:
    """Print one document on a line of its own."""
    say_json(msgspec.json.encode(value).decode())


def print_table(columns: Sequence[str], rows: Iterable[Row], *, least: Sequence[str] = ()) -> None:
    """Print rows under the names of their columns. Numbers are aligned to the right.

    On a terminal that is too narrow, long texts are cut, and the columns `least` are left out, in
    their order. A pipe gets everything.
    """
    cells = cells_of(columns, rows, least=least)
    if not is_whole():
        draw(cells)
        return
    widths = [max(map(len, column)) for column in zip(columns, *cells.rows, strict=True)]
    for row in (columns, *cells.rows):
        aligned = (
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(row, widths, cells.numeric, strict=True)
        )
        say("  ".join(aligned).rstrip())


def cells_of(columns: Sequence[str], rows: Iterable[Row], *, least: Sequence[str] = ()) -> Cells:
    """The texts of rows, safe for a terminal."""
    found = list(rows)
    texts = [[_cell(cell) for cell in row] for row in found]
    numeric = [all(isinstance(row[at], int | float) for row in found) for at in range(len(columns))]
    return Cells(columns, texts, numeric, least)


def _cell(value: object) -> str:
    if isinstance(value, float):
        return f"{value:,.1f}"
    return f"{value:,}" if isinstance(value, int) else one_line(str(value))


def short(value: object) -> str:
    """Text, or other data as JSON, cut to the width of a table column."""
    if isinstance(value, msgspec.UnsetType):
        return ""
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    # Only the beginning of a long payload is needed.
    text = one_line(text[: 2 * LONGEST_TEXT])
    return text if len(text) <= LONGEST_TEXT else f"{text[: LONGEST_TEXT - 1]}…"


def span(ms: int) -> str:
    """A duration in its largest unit and the next: 3d 4h, 12m 5s, 0s."""
    parts = []
    for unit, name in _AGES:
        number, ms = divmod(max(ms, 0), unit)
        if number:
            parts.append(f"{number}{name}")
        elif parts:
            break
    return " ".join(parts[:2]) or "0s"


def ago(moment: int | None) -> str:
    """How long ago, or from now, a moment in milliseconds since 1970 is."""
    if moment is None:
        return ""
    now = time.time_ns() // 1_000_000
    return f"{span(now - moment)} ago" if moment <= now else f"in {span(moment - now)}"


def moment(ms: int) -> str:
    """A moment in milliseconds since 1970, in UTC, and how long ago it is."""
    from zq.model.clock import LAST_DATE_MS  # with asyncio, which few commands need

    date = datetime.fromtimestamp(min(ms, LAST_DATE_MS) / 1000, UTC)
    return f"{date:%Y-%m-%d %H:%M:%S} UTC, {ago(ms)}"


def job_document(job: "StoredJob") -> dict[str, Any]:
    """A job as the server shows it. Fields without a value are left out, unless they are data."""
    document: dict[str, Any] = msgspec.to_builtins(job)
    kept = ("payload", "result")
    document = {
        name: value for name, value in document.items() if value is not None or name in kept
    }
    return document | {"created_at": job.created_at}
