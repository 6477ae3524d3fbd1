"""Arbitrary bytes: a request is understood, or refused by name; nothing else happens.

`CRASH_FUZZ` sets the number of examples of each test; it also makes them other ones every time.
"""

import json
import math
import os
import struct
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import msgpack
import pytest
from conformance.streams import CUTTERS
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from zq.model.errors import InvalidRequest, ZqError
from zq.model.ids import IdCodec
from zq.model.job import JobRecord
from zq.model.lifecycle import Status
from zq.model.payload import MAX_DEPTH, MAX_INTEGER, MIN_INTEGER
from zq.wire import bodies, bulk
from zq.wire.codecs import JSON, MSGPACK, BodyCodec
from zq.wire.documents import taken_documents
from zq.wire.framing import EVENT_STREAM, MSGPACK_STREAM, NDJSON, Framing

EXAMPLES = os.environ.get("CRASH_FUZZ")

fuzzed = settings(
    max_examples=int(EXAMPLES or 30),
    derandomize=EXAMPLES is None,
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)

texts = st.text(st.characters(codec="utf-8"), max_size=20)
scalars = (
    st.none()
    | st.booleans()
    | st.integers(MIN_INTEGER, MAX_INTEGER)
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(texts, inner, max_size=5),
    max_leaves=20,
)
"""All that the data model holds, but for its depth."""

FIELDS = (
    *("queue", "type", "payload", "priority", "ready_at", "retry_limit", "backoff", "retention"),
    *("unique_key", "unique_while", "batch", "budgets", "ids", "jobs", "message", "kill"),
    *("exponent", "base_ms", "jitter_ms", "completed_ms", "dead_ms", "error_type", "retry_at"),
    *("items", "id", "result", "lease", "force", "on_conflict"),
)
objects = st.recursive(
    scalars,
    lambda inner: (
        st.dictionaries(st.sampled_from(FIELDS), inner, max_size=8) | st.lists(inner, max_size=3)
    ),
    max_leaves=30,
)
"""Documents that look like requests."""

JOB = {"queue": "q", "type": "t", "payload": {"n": [1, 2.5, None, "ä"]}, "unique_key": "k"}

BULK = bulk.bulk_decoder()
LIMITS = bodies.Limits(body=1_000, payload=100, items=2)

DECODERS: dict[str, Callable[[bytes, BodyCodec], object]] = {
    "job": partial(bodies.decode_job, limits=LIMITS),
    "jobs": lambda body, codec: list(
        bulk.new_jobs(bulk.decode_bulk(body, codec, BULK, LIMITS), len(body), codec, LIMITS)
    ),
    "success": bodies.decode_success,
    "successes": partial(bodies.decode_successes, limits=LIMITS),
    "cancellation": bodies.decode_force,
    "retention": bodies.decode_retention,
    "failure": bodies.decode_failure,
    "patch": bodies.decode_patch,
}
every_decoder = pytest.mark.parametrize("decode", DECODERS.values(), ids=DECODERS)
both_codecs = pytest.mark.parametrize("codec", [JSON, MSGPACK], ids=lambda each: each.name)


def encoded(document: Any, codec: BodyCodec) -> bytes:
    if codec is JSON:
        return json.dumps(document, ensure_ascii=False).encode()
    packed: bytes = msgpack.packb(document)
    return packed


@st.composite
def damaged(draw: st.DrawFn, codec: BodyCodec) -> bytes:
    """A sound body of which some bytes were replaced, left out or put in."""
    body = bytearray(encoded(draw(st.just(JOB) | st.just({"jobs": [JOB] * 3}) | objects), codec))
    for _ in range(draw(st.integers(1, 4))):
        place = draw(st.integers(0, len(body)))
        body[place : place + draw(st.integers(0, 3))] = draw(st.binary(max_size=3))
    return bytes(body)


def assert_sound(value: Any, depth: int = 0) -> None:
    """The value lies within the data model."""
    assert depth <= MAX_DEPTH
    match value:
        case bool() | None | str():
            pass
        case int():
            assert MIN_INTEGER <= value <= MAX_INTEGER
        case float():
            assert math.isfinite(value)
        case list():
            for item in value:
                assert_sound(item, depth + 1)
        case dict():
            for item in value.values():
                assert_sound(item, depth + 1)
        case _:
            raise AssertionError(type(value))


@both_codecs
@fuzzed
@given(data=st.data())
def test_bytes_are_text_of_the_data_model_or_refused(codec: BodyCodec, data: st.DataObject) -> None:
    body = data.draw(st.binary(max_size=200) | damaged(codec))
    try:
        text = codec.to_json(body)
    except InvalidRequest as error:
        assert codec.name in error.message
    else:
        assert_sound(json.loads(text))


@fuzzed
@given(value=values)
def test_both_formats_say_the_same(value: Any) -> None:
    from_json = json.loads(JSON.to_json(encoded(value, JSON)))
    from_msgpack = json.loads(MSGPACK.to_json(encoded(value, MSGPACK)))
    assert from_json == from_msgpack == value


@every_decoder
@both_codecs
@fuzzed
@given(data=st.data())
def test_a_body_is_understood_or_refused_by_name(
    decode: Callable[[bytes, BodyCodec], object], codec: BodyCodec, data: st.DataObject
) -> None:
    sound = objects.map(lambda document: encoded(document, codec))
    body = data.draw(st.binary(max_size=100) | sound | damaged(codec))
    try:
        decode(body, codec)
    except ZqError as error:
        assert error.message


def job(key: int, payload: Any) -> JobRecord:
    text = json.dumps(payload, ensure_ascii=False)
    return JobRecord(
        key=key,
        queue="q",
        type="t",
        priority=1,
        status=Status.IN_FLIGHT,
        ready_at=1,
        payload_size=len(text.encode()),
        payload=text,
    )


@pytest.mark.parametrize(
    "framing", [NDJSON, MSGPACK_STREAM, EVENT_STREAM], ids=lambda each: each.content_type
)
@fuzzed
@given(payloads=st.lists(values, max_size=4), cuts=st.lists(st.integers(1, 60), min_size=1))
def test_a_stream_can_be_read_however_it_is_cut(
    framing: Framing, payloads: Sequence[Any], cuts: Sequence[int]
) -> None:
    jobs = [job(number << 20, payload) for number, payload in enumerate(payloads, 1)]
    sent = framing.frames(taken_documents(jobs, IdCodec("0" * 12))) + framing.heartbeat
    cut, buffer, frames = CUTTERS[framing.content_type], bytearray(), []
    turn = 0
    while sent:
        size = cuts[turn % len(cuts)]
        buffer += sent[:size]
        sent, turn = sent[size:], turn + 1
        found, frame = cut(buffer)
        while found:
            frames.append(frame)
            found, frame = cut(buffer)
    assert not buffer
    assert [frame and frame["payload"] for frame in frames] == [*payloads, None]


@fuzzed
@given(lengths=st.lists(st.integers(0, 2**32 - 1), max_size=3), rest=st.binary(max_size=50))
def test_no_msgpack_header_makes_the_decoder_reserve_what_it_claims(
    lengths: Sequence[int], rest: bytes
) -> None:
    for kind in (b"\xdd", b"\xdf", b"\xdb", b"\xc6"):
        body = b"".join(kind + struct.pack(">I", length) for length in lengths) + rest
        try:
            assert_sound(json.loads(MSGPACK.to_json(body)))
        except InvalidRequest as error:
            assert "MessagePack" in error.message
