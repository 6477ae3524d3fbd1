"""The cache of header blocks equals hpack's results, whatever the tables do."""

from collections.abc import Sequence

from hpack import Decoder, Encoder, NeverIndexedHeaderTuple
from hypothesis import given
from hypothesis import strategies as st

from zq.http.transport.h2.hpack import RepeatingDecoder, RepeatingEncoder

Block = list[tuple[bytes, bytes]]

NAMES = st.sampled_from([b":status", b"date", b"x-one", b"x-two", b"content-type"])
VALUES = st.sampled_from([b"200", b"", b"a", b"b" * 60, b"c" * 3000, b"application/json"])
FIELDS = st.tuples(NAMES, VALUES) | st.builds(NeverIndexedHeaderTuple, NAMES, VALUES)
# A few lists, so that they come again, between changes of the table's size.
LISTS = st.lists(st.lists(FIELDS, max_size=4), min_size=1, max_size=4)
STEPS = st.lists(st.integers(0, 3) | st.sampled_from([0.0, 64.0, 4096.0]), max_size=30)


def run(encoder: Encoder, decoder: Decoder, lists: list[Block], steps: Sequence[float]) -> None:
    """An int sends one of the lists, a float resizes the table; each list must arrive."""
    for step in steps:
        if isinstance(step, float):
            if step != encoder.header_table_size:  # hpack forgets to tell of a size set twice
                encoder.header_table_size = int(step)
            continue
        fields = lists[step % len(lists)]
        received = decoder.decode(encoder.encode(fields), raw=True)
        assert [tuple(field) for field in received] == [tuple(field) for field in fields]


@given(lists=LISTS, steps=STEPS)
def test_what_the_encoder_repeats_is_understood(lists: list[Block], steps: list[float]) -> None:
    run(RepeatingEncoder(), Decoder(), lists, steps)


@given(lists=LISTS, steps=STEPS)
def test_what_the_decoder_repeats_was_meant(lists: list[Block], steps: list[float]) -> None:
    run(Encoder(), RepeatingDecoder(), lists, steps)


def test_a_table_made_small_and_large_again_has_forgotten_what_was_in_it() -> None:
    lists: list[Block] = [[(b"x-one", b"c")], [(b":status", b"200")]]
    run(RepeatingEncoder(), Decoder(), lists, [0, 0, 0.0, 4096.0, 1, 0])


def test_a_block_that_changes_nothing_is_made_once() -> None:
    encoder = RepeatingEncoder()
    fields = [(b":status", b"200"), (b"x-one", b"a")]
    first, second = encoder.encode(fields), encoder.encode(fields)
    assert first != second
    assert encoder.encode(fields) is second


def test_a_block_for_a_peer_without_a_table_is_made_once() -> None:
    encoder = RepeatingEncoder()
    encoder.header_table_size = 0
    fields = [(b":status", b"200"), (b"x-one", b"a")]
    encoder.encode(fields)  # with the new size
    second = encoder.encode(fields)
    assert encoder.encode(fields) is second
