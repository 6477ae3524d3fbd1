"""How heavy bodies are, and that they are bounded before their values are made."""

import json
import struct
from collections.abc import Callable
from typing import Any

import msgpack
import pytest

from zq.model.errors import InvalidRequest, TooManyValues
from zq.model.payload import MAX_DEPTH, has_long_integer, nests_too_deeply
from zq.wire.codecs import JSON, MSGPACK, BodyCodec, integral
from zq.wire.weight import (
    CHECKED,
    HEAVY_BYTES,
    LIGHT_BYTES,
    LIGHT_CONTAINERS,
    LIGHT_VALUES,
    QUICK_BYTES,
    check_json,
    is_light,
    json_of_msgpack,
    most_values,
    request_json,
)


@pytest.mark.parametrize(
    ("value", "values"),
    [(1, 1), ([], 2), ([1, 2], 3), ({"a": [1, {"b": 2}], "c": None}, 6), ("a,b[", 3)],
)
def test_values_are_never_more_than_commas_and_brackets_say(value: object, values: int) -> None:
    assert most_values(json.dumps(value).encode()) == values


def test_a_body_is_light_by_its_size_or_by_its_values() -> None:
    text = b'"' + b"x" * LIGHT_BYTES + b'"'
    assert is_light(text, JSON.name)
    assert not is_light(text, MSGPACK.name)
    assert is_light(msgpack.packb([1] * (LIGHT_BYTES - 5)), MSGPACK.name)
    assert not is_light(b'"' + b"x" * HEAVY_BYTES + b'"', JSON.name)
    assert is_light(b"1," * (LIGHT_BYTES // 2), JSON.name)
    assert not is_light(b"[" + b"1234567," * LIGHT_VALUES + b"1]", JSON.name)


@pytest.mark.parametrize(
    ("pack", "codec"), [(json.dumps, JSON), (msgpack.packb, MSGPACK)], ids=["JSON", "MessagePack"]
)
@pytest.mark.parametrize("container", [[], {}, [1], {"": 1}])
def test_a_body_of_many_small_containers_is_not_light(
    pack: Callable[[object], Any], codec: BodyCodec, container: object
) -> None:
    def packed(count: int) -> bytes:
        body = pack([container] * count)
        return body.encode() if isinstance(body, str) else bytes(body)

    assert is_light(packed(LIGHT_CONTAINERS - 1), codec.name)
    many = packed(LIGHT_CONTAINERS + 1)
    # One that is short enough takes the loop less than a slice.
    assert is_light(many, codec.name) == (len(many) <= QUICK_BYTES)
    assert not is_light(packed(QUICK_BYTES + 1), codec.name)


@pytest.mark.parametrize("size", [1, 3, 20])
@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (b"x", "binary"),
        (float("nan"), "finite"),
        (msgpack.Timestamp(1), "extension"),
        (msgpack.ExtType(5, b"x"), "extension"),
        ({1: 2}, "map key"),
        ({b"x": 2}, "map key"),
    ],
)
def test_a_value_that_is_not_allowed_is_found_at_each_place(
    wrong: object, said: str, size: int
) -> None:
    for at in range(size):
        values: list[object] = [1, "x", None, 1.5, True, [], {}] * 3
        values[at] = wrong
        for holder in (values, {str(n): value for n, value in enumerate(values)}, [[], [values]]):
            with pytest.raises(InvalidRequest, match=said):
                MSGPACK.to_json(msgpack.packb(holder))


def test_a_bound_counts_values_and_no_commas_of_texts() -> None:
    list(check_json(b'["a,b,c,d", "[[[[", "\\",\\"", 1]', 5))
    with pytest.raises(TooManyValues):
        list(check_json(b'["a,b,c,d", "[[[[", "\\",\\"", 1, 2, 3, 4]', 5))


@pytest.mark.parametrize(
    "value", [[1] * 9, [[]] * 9, {str(n): {} for n in range(9)}, [[1] * 4] * 2]
)
def test_messagepack_is_bounded_too(value: object) -> None:
    with pytest.raises(TooManyValues):
        list(json_of_msgpack(msgpack.packb(value), 8))
    assert [json.loads(text) for text in json_of_msgpack(msgpack.packb(value), 99)] == [value]


def test_messagepack_that_announces_too_much_takes_no_memory() -> None:
    with pytest.raises(TooManyValues):
        list(json_of_msgpack(b"\xdd" + struct.pack(">I", 2**32 - 1), 1_000_000))


@pytest.mark.parametrize("body", [b"\x81\x01\x02", b"\xc4\x01a", b"\xc1", b"\x92\x01", b"\x01\x01"])
def test_other_faults_are_told_by_the_codec(body: bytes) -> None:
    with pytest.raises(InvalidRequest, match="invalid MessagePack"):
        list(json_of_msgpack(body, 99))


@pytest.mark.parametrize("depth", [1, MAX_DEPTH - 1, MAX_DEPTH, MAX_DEPTH + 1, 3 * MAX_DEPTH])
@pytest.mark.parametrize(
    ("opens", "closes"), [("[", "]"), ('{"]": ', "}"), ('[1, "[[", ', ", {}]")], ids="[{,"
)
def test_depth_is_found_among_texts_and_neighbours(depth: int, opens: str, closes: str) -> None:
    text = opens * depth + "0" + closes * depth
    # An empty container beside the innermost value is a level of its own.
    levels = depth + ("{}" in closes)
    json.loads(text)
    assert nests_too_deeply(text) == (levels > MAX_DEPTH)
    wide = f"[{', '.join(['[]'] * 200)}, {text}]"
    assert nests_too_deeply(wide) == (levels + 1 > MAX_DEPTH)


@pytest.mark.parametrize(
    ("text", "is_long"),
    [
        ("18446744073709551615", False),
        ("18446744073709551616", True),
        ("[-9223372036854775808]", False),
        ("[-9223372036854775809]", True),
        ('{"a":' + "1" * 5_000 + "}", True),
        ('"12345678901234567890123"', False),
        ("0.12345678901234567890123", False),
        ("12345678901234567890123.5", False),
        ("12345678901234567890123e5", False),
        ("1e-12345678901234567890123", False),
    ],
)
def test_long_integers_are_found_and_nothing_else(text: str, is_long: bool) -> None:
    assert has_long_integer(text.encode()) is is_long


@pytest.mark.parametrize("pack", [json.dumps, msgpack.packb])
def test_floats_become_integers_aside_and_not_again_on_the_loop(pack: Callable[..., Any]) -> None:
    value = {"a": [5.0, 1.5, {"b": -7.00}], "payload": [1.0], "c": "1.0"}
    packed = pack(value)
    kind, body = ("JSON", packed.encode()) if isinstance(packed, str) else ("MessagePack", packed)
    (text,) = request_json(body, 99, kind)
    assert text == b'{"a":[5,1.5,{"b":-7}],"payload":[1.0],"c":"1.0"}'
    assert CHECKED[kind].integral(body) is body
    assert not list(request_json(text, 99, "JSON"))


def test_what_is_deeper_than_any_field_is_not_looked_at() -> None:
    deep = b"[" * 600 + b"1.0" + b"]" * 600
    assert integral(b'{"a":1.0,"x":' + deep + b"}") == b'{"a":1,"x":' + deep + b"}"
