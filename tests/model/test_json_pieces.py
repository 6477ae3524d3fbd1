"""Long JSON in pieces: the same values come of it, and what is no JSON is refused."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from zq.model import payload
from zq.model.payload import MAX_DEPTH, decoding

TEXTS = st.text(max_size=6) | st.sampled_from(["a,b", "]}", '"\\', ":{"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | TEXTS,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(TEXTS, inner, max_size=5),
    max_leaves=30,
)


def decoded(text: str) -> Any:
    pieces = decoding(text)
    while True:
        try:
            next(pieces)
        except StopIteration as done:
            return done.value


@given(VALUES, st.integers(1, 30), st.sampled_from([None, 1]), st.data())
def test_pieces_accept_what_the_decoder_accepts(
    value: Any, piece: int, indent: int | None, data: st.DataObject
) -> None:
    text = json.dumps(value, indent=indent)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(payload, "PIECE", piece)
        assert decoded(text) == value
        at = data.draw(st.integers(0, len(text) - 1))
        spoilt = text[:at] + data.draw(st.sampled_from(["", ",", "]", "}", "[", '"', ":"]))
        spoilt += text[at + data.draw(st.integers(0, 1)) :]
        try:
            expected = msgspec.json.decode(spoilt)
        except msgspec.DecodeError:
            with pytest.raises(msgspec.DecodeError):
                decoded(spoilt)
        else:
            assert decoded(spoilt) == expected


def test_what_nests_too_deeply_is_refused() -> None:
    with pytest.raises(msgspec.DecodeError):
        decoded("[" * (MAX_DEPTH + 1) + " " * payload.PIECE + "]" * (MAX_DEPTH + 1))
    with pytest.raises(msgspec.DecodeError):
        decoded("[" * 1_000_000)
