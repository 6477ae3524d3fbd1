"""The names of segments and the form of records, which devices and the pipeline share."""

import msgspec
import pytest

from zq.features.history.model import (
    OUTCOMES,
    HistoryRecord,
    Manifest,
    Segment,
    parse_segment_name,
    segment_name,
)


def test_names_of_segments_sort_by_sequence_number() -> None:
    names = [segment_name("01J-A", first, first + 1) for first in (9, 10, 2**63 - 2)]

    assert names == sorted(names)
    assert names[0] == "01J-A-00000000000000000009-00000000000000000010.ndjson.gz"


def test_a_name_tells_what_it_was_made_from() -> None:
    assert parse_segment_name(segment_name("01J-A", 7, 1_000)) == ("01J-A", 7, 1_000)


@pytest.mark.parametrize("name", ["manifest.json", "a-1-2.ndjson.gz", ".tmp-1", "x.ndjson.gz"])
def test_other_names_are_no_segments(name: str) -> None:
    assert parse_segment_name(name) is None


@pytest.mark.parametrize("outcome", OUTCOMES)
def test_a_record_survives_json_with_what_it_lacks_as_null(outcome: str) -> None:
    line = {
        "seq": 1,
        "epoch": "E",
        "device": "d",
        "job_id": "J",
        "queue": "q",
        "type": "t",
        "attempt": 1,
        "outcome": outcome,
        "enqueued_at": 1,
        "ready_at": 2,
        "finished_at": 3,
        "payload_bytes": 4,
        "priority": 5,
        "dequeued_at": None,
        "error_type": None,
        "error_message": None,
        "worker": None,
    }

    record = msgspec.json.decode(msgspec.json.encode(line), type=HistoryRecord)

    assert msgspec.to_builtins(record) == line


def test_a_manifest_has_its_format_beside_its_segments() -> None:
    segment = Segment(file="f", first_seq=1, last_seq=2, count=2, bytes=3, sha256="00")

    encoded = msgspec.to_builtins(Manifest(epoch="E", device="d", segments=(segment,)))

    assert encoded["format"] == 1
    assert encoded["segments"][0]["sha256"] == "00"
