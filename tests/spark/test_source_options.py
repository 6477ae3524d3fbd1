"""The options of `format("zq")`, and the secrets that it keeps."""

import json
import pickle
import re

import pytest
from documents import ROOT
from pyspark.sql import types as T

from zq.features.history.client import HistoryReader
from zq.spark.errors import SourceError
from zq.spark.source.options import KNOWN, parse
from zq.spark.source.reading import HistoryRange
from zq.spark.source.rows import BadRow, check_columns, job_of, text_of
from zq.spark.source.streaming import admit

SECRET = "s3cret-of-the-key"


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({"colour": "red"}, "unknown option 'colour'"),
        ({"table": "errors"}, "table must be history or jobs or dead"),
        ({"after": "-1"}, "after must be a whole number"),
        ({"recordsPerPartition": "0"}, "from 1 on"),
        ({"onUnavailable": "wait"}, "onUnavailable must be fail or skip"),
        ({"url": "http://a", "urls": "http://b"}, "not both"),
        ({"url": "localhost:7890"}, "not the address"),
        ({"queue": ""}, "queue is empty: leave it out where any value will do"),
        ({"outcome": "dead,"}, "outcome is empty"),
        ({"outcome": "died"}, "outcome must be of completed, .*, not 'died'"),
        ({"table": "jobs", "filter": ""}, "filter is empty"),
        ({"status": "dead"}, "status selects nothing from the table history"),
        ({"table": "jobs", "until": "7"}, "until selects nothing from the table jobs"),
        ({"table": "dead", "STATUS": "ready"}, "status selects nothing from the table dead"),
        ({"pushdown": "true"}, "unknown option 'pushdown'"),
    ],
)
def test_what_makes_no_sense_is_refused(given: dict[str, str], complaint: str) -> None:
    with pytest.raises(SourceError, match=complaint):
        parse(given)


def test_names_of_options_may_be_in_any_case_and_sparks_own_are_passed_over() -> None:
    options = parse({"URLS": "http://a/, http://b", "maxrecordsperbatch": "7", "path": "x"})
    assert (options.urls, options.max_records_per_batch) == (("http://a", "http://b"), 7)


def test_a_secret_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    assert SECRET not in repr(parse({"token": SECRET}))
    monkeypatch.setenv("ZQ_TOKEN", SECRET)
    options = parse({})
    assert options.token == SECRET
    assert SECRET not in repr(options)


def test_an_address_with_a_secret_is_refused_without_repeating_it() -> None:
    with pytest.raises(SourceError, match="give a key as token") as refusal:
        parse({"url": f"http://me:{SECRET}@queue.example.org"})
    assert SECRET not in str(refusal.value)


def test_what_goes_to_executors_pickles() -> None:
    options = parse({"url": "http://a", "token": SECRET})
    assert pickle.loads(pickle.dumps(options)) == options
    part = pickle.loads(pickle.dumps(HistoryRange("http://a", "e", 1, 2)))
    assert (part.url, part.until) == ("http://a", 2)
    assert pickle.loads(pickle.dumps(HistoryReader("http://a", SECRET))).url == "http://a"


@pytest.mark.parametrize(
    ("limit", "shares"),
    [
        (None, {"a": 10, "b": 2, "c": 30}),
        (100, {"a": 10, "b": 2, "c": 30}),
        (12, {"a": 5, "b": 2, "c": 5}),
        (24, {"a": 10, "b": 2, "c": 12}),
        (1, {"a": 0, "b": 1, "c": 0}),
    ],
)
def test_a_limit_is_shared_evenly(limit: int | None, shares: dict[str, int]) -> None:
    assert admit({"a": 10, "b": 2, "c": 30}, limit) == shares


# Rows

PLAIN = parse({})


def test_a_row_becomes_a_job() -> None:
    row = {"queue": "q", "type": "t", "payload": '{"a": [1, 2]}', "priority": 5, "group": None}
    job = {"queue": "q", "type": "t", "payload": {"a": [1, 2]}, "priority": 5}
    assert json.loads(text_of(job_of(row, PLAIN))) == job


def test_maps_are_equal_in_whatever_order_their_entries_come() -> None:
    one, other = (
        text_of(job_of({"queue": "q", "type": "t", "payload": payload}, PLAIN))
        for payload in ({"a": 1, "b": 2}, {"b": 2, "a": 1})
    )
    assert one == other


def test_options_fill_in_what_rows_do_not_say() -> None:
    options = parse({"queue": "other", "type": "u", "priority": "3"})
    job = job_of({"queue": "q", "type": None}, options)
    assert (job["queue"], job["type"], job["priority"], job["payload"]) == ("q", "u", 3, None)


@pytest.mark.parametrize(
    ("row", "complaint"),
    [
        ({"queue": None, "type": "t"}, "queue is missing"),
        ({"queue": "q", "type": "t", "payload": "not json"}, "not JSON text"),
    ],
)
def test_a_row_that_is_no_job_says_why(row: dict[str, object], complaint: str) -> None:
    with pytest.raises(BadRow, match=complaint):
        job_of(row, PLAIN)


def test_columns_that_are_no_fields_are_refused() -> None:
    text = T.StructType().add("queue", "string").add("colour", "string")
    with pytest.raises(SourceError, match="colour: not fields of a job"):
        check_columns(text, PLAIN)
    with pytest.raises(SourceError, match="there is no column type"):
        check_columns(T.StructType().add("queue", "string"), PLAIN)


def test_the_documents_have_every_option() -> None:
    text = (ROOT / "docs" / "spark.md").read_text(encoding="utf-8")
    table = text.partition("| option | means | default |")[2].partition("\n\n")[0]
    listed = {name for line in table.splitlines() for name in _names(line)}
    # The fields of a job are told of in the text above it.
    assert listed == set(KNOWN) - {"priority"}


def _names(line: str) -> list[str]:
    return re.findall(r"`(\w+)`", line.split("|")[1]) if line.startswith("| `") else []
