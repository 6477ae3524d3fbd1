"""Stored JSON becomes MessagePack piece by piece: the same values, and no large piece."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from zq.model import payload
from zq.model.payload import PIECE
from zq.wire.packing import repacking

TEXTS = st.text(max_size=8) | st.sampled_from(["a,b", "]}", '"\\', ":{"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats(-1e9, 1e9) | TEXTS,
    lambda inner: st.lists(inner, max_size=6) | st.dictionaries(TEXTS, inner, max_size=6),
    max_leaves=40,
)


def packed(text: str) -> tuple[Any, list[int]]:
    """What comes of JSON by way of MessagePack, and the lengths of the pieces."""
    lengths: list[int] = []
    pieces = repacking(text)
    while True:
        try:
            lengths.append(next(pieces))
        except StopIteration as done:
            return msgspec.msgpack.decode(done.value), lengths


@given(VALUES, st.integers(1, 30), st.sampled_from([None, 1]), st.booleans())
def test_what_is_packed_in_pieces_is_the_same(
    value: Any, piece: int, indent: int | None, tight: bool
) -> None:
    text = json.dumps(value, indent=indent, separators=(",", ":") if tight else None)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(payload, "PIECE", piece)
        assert packed(text)[0] == msgspec.json.decode(text)


@pytest.mark.parametrize(
    "text",
    [
        json.dumps({f"k{n}": n for n in range(20_000)}),
        "[" + "0," * 100_000 + "0]",
        "[" + "[]," * 50_000 + "{}]",
        json.dumps([list(range(8_000))] * 10),
        "[" * 100 + "0," * 50_000 + "0" + "]" * 100,
        '{"a": [1], "b": ' * 60 + "[" + "1," * 50_000 + "1]" + "}" * 60,
    ],
    ids=["names", "numbers", "arrays", "long arrays", "deep arrays", "deep objects"],
)
def test_no_piece_is_long(text: str) -> None:
    value, lengths = packed(text)
    assert value == msgspec.json.decode(text)
    assert len(lengths) > 2
    assert max(lengths) <= 2 * PIECE


@pytest.mark.parametrize("text", ["[" + "1," * 9_000 + '"]', "{" + "1," * 9_000 + "}"], ids=len)
def test_what_is_no_json_is_refused(text: str) -> None:
    with pytest.raises(msgspec.DecodeError):
        packed(text)
