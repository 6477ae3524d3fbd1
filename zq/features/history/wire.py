"""The history of jobs as records for readers."""

from collections.abc import Sequence

import msgspec

from zq.features.history.model import HistoryRecord


class HistoryDocument(msgspec.Struct):
    """An answer: records, with their database and its range of records.

    `recording` tells whether attempts that end from now on are recorded.
    """

    epoch: str
    recording: bool
    min_seq: int
    max_seq: int
    records: list[HistoryRecord]


def lines_of(records: Sequence[HistoryRecord]) -> bytes:
    """One record on each line."""
    return _encoder.encode_lines(records)


_encoder = msgspec.json.Encoder()
