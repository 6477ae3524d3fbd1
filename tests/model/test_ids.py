"""Ids: keys that always rise, ULIDs in the same order, and cursors at any place between them."""

from itertools import pairwise

import pytest
import ulid
from hypothesis import given
from hypothesis import strategies as st

from zq.model.ids import (
    ALPHABET,
    EPOCH_MS,
    LENGTH,
    SLOTS,
    SUFFIX_LENGTH,
    FormerSuffix,
    IdCodec,
    Mint,
    codec_of,
    timestamp_ms,
)

MAX_KEY = 2**63 - 1
NOW = 1_750_000_000_000
SUFFIX = "7NNNNNNNNNNZ"
CODEC = IdCodec(SUFFIX)

keys = st.integers(0, MAX_KEY) | st.sampled_from([0, 1, 15, 16, 2**20 - 1, 2**20, MAX_KEY])
nearby = st.tuples(keys, st.integers(-3, 3)).map(lambda k: min(max(k[0] + k[1], 0), MAX_KEY))
suffixes = st.text(ALPHABET, min_size=SUFFIX_LENGTH, max_size=SUFFIX_LENGTH)


@st.composite
def cursors(draw: st.DrawFn) -> str:
    """Any text, and often one that only just fails to be an id."""
    if draw(st.booleans()):
        return draw(st.text(max_size=40))
    text = CODEC.text(draw(keys))
    place = draw(st.integers(0, LENGTH))
    new = draw(st.text(ALPHABET + "az-~ÅILOU\0😀", max_size=3))
    cut = draw(st.sampled_from([0, len(new), LENGTH]))
    return text[:place] + new + text[place + cut :]


@given(keys, suffixes)
def test_a_key_survives_the_way_through_its_ulid(key: int, suffix: str) -> None:
    codec = IdCodec(suffix)
    text = codec.text(key)
    assert codec.key(text) == key
    assert str(ulid.from_str(text)) == text


@given(keys)
def test_the_text_is_a_ulid_that_carries_the_keys_time_and_count(key: int) -> None:
    parsed = ulid.from_str(CODEC.text(key))
    assert str(parsed) == CODEC.text(key)
    assert int.from_bytes(parsed.timestamp().bytes, "big") == (key >> 20) + EPOCH_MS
    assert int.from_bytes(parsed.randomness().bytes, "big") >> 60 == key & (2**20 - 1)


@given(keys, keys)
def test_texts_are_in_the_order_of_their_keys(one: int, other: int) -> None:
    assert (CODEC.text(one) < CODEC.text(other)) == (one < other)


@given(keys, suffixes.filter(lambda suffix: suffix != SUFFIX))
def test_an_id_of_another_database_is_none_of_ours(key: int, foreign: str) -> None:
    text = IdCodec(foreign).text(key)
    assert CODEC.key(text) is None
    assert str(ulid.from_str(text)) == text


@given(cursors())
def test_whatever_is_not_the_text_of_a_key_has_no_key(text: str) -> None:
    key = CODEC.key(text)
    assert key is None or CODEC.text(key) == text


@pytest.mark.parametrize(
    "text",
    [
        "",
        CODEC.text(5).lower(),
        CODEC.text(5)[:-1],
        CODEC.text(5) + "0",
        "I" + CODEC.text(5)[1:],
        "0" * (LENGTH - SUFFIX_LENGTH) + SUFFIX,  # before 2020
        "7" + "Z" * (LENGTH - SUFFIX_LENGTH - 1) + SUFFIX,  # after 2298
    ],
)
def test_texts_that_only_look_like_ids_have_no_key(text: str) -> None:
    assert CODEC.key(text) is None


@given(st.lists(keys, max_size=8), cursors())
def test_a_cursor_parts_the_ids_as_text_order_does(stored: list[int], cursor: str) -> None:
    low, high = CODEC.position(cursor)
    # The keys beside the place are where a mistake by one would show.
    beside = [k for p in (low, high) for k in (p - 1, p, p + 1) if 0 <= k < MAX_KEY]
    for key in [*stored, *beside]:
        if key < MAX_KEY:
            assert (key > low) == (CODEC.text(key) > cursor)
            assert (key < high) == (CODEC.text(key) < cursor)


@given(nearby, st.lists(nearby))
def test_an_id_as_a_cursor_stands_exactly_at_its_key(key: int, others: list[int]) -> None:
    assert CODEC.position(CODEC.text(key)) == (key, key)
    cursor = CODEC.text(key)
    ahead = sorted(CODEC.text(other) for other in others if other > key)
    assert ahead == sorted(text for text in map(CODEC.text, others) if text > cursor)


def test_places_before_all_ids_and_after_all_ids() -> None:
    for text in ("", "0", "\0", "00000000000000000000000000"):
        low, high = CODEC.position(text)
        assert low == high == -1
    for text in ("8", "a", "ZZZZ", "😀", "7" + "Z" * 25):
        assert CODEC.position(text) == (MAX_KEY, MAX_KEY)


@given(
    st.lists(st.tuples(st.integers(0, 200), st.integers(-10_000, 10_000)), max_size=20),
    st.integers(0, 1 << 60),
)
def test_keys_rise_whatever_the_wall_clock_does(calls: list[tuple[int, int]], last: int) -> None:
    mint = Mint(last)
    taken = [last]
    for count, offset in calls:
        fresh = mint.take(count, NOW + offset)
        assert len(fresh) == count
        taken += fresh
        assert mint.last == taken[-1]
    assert all(before < after for before, after in pairwise(taken))


def test_a_fresh_key_carries_the_present_time_a_zero_count_and_slot_zero() -> None:
    (key,) = Mint(0).take(1, NOW)
    assert (key >> 20) + EPOCH_MS == NOW
    assert key & (2**20 - 1) == 0


def test_the_slot_stays_zero_and_the_count_carries_into_the_time() -> None:
    mint = Mint(0)
    taken = [*mint.take(40_000, NOW), *mint.take(30_000, NOW)]
    assert all(key & 15 == 0 for key in taken)
    assert len(set(taken)) == 70_000
    assert (taken[-1] >> 20) + EPOCH_MS == NOW + 1


@given(st.integers(0, SLOTS - 1), st.integers(0, 1 << 60), st.integers(1, 5))
def test_servers_of_different_slots_never_mint_the_same_key(
    slot: int, last: int, count: int
) -> None:
    keys = list(Mint(last, slot).take(count, NOW))
    assert all(key % SLOTS == slot for key in keys)
    assert keys[0] > last
    assert keys == sorted(set(keys))


def test_a_clock_before_2020_still_mints() -> None:
    first, second = Mint(0).take(2, 0)
    assert 0 < first < second


def test_taking_none_leaves_the_mint_as_it_was() -> None:
    mint = Mint(77)
    assert list(mint.take(0, NOW)) == []
    assert mint.last == 77


@given(st.integers(EPOCH_MS, EPOCH_MS + 2**42))
def test_an_id_tells_when_it_was_minted(now: int) -> None:
    (key,) = Mint(-1).take(1, now)

    assert timestamp_ms(CODEC.text(key)) == now


OLD, OLDER, RESTORED_AT, BEFORE = "0AAAAAAAAAAA", "ZZZZZZZZZZZZ", 5_000_000, 2_000_000
RESTORED = codec_of(SUFFIX, [FormerSuffix(BEFORE, OLDER), FormerSuffix(RESTORED_AT, OLD)])

around_restores = st.integers(0, 7_000_000) | st.sampled_from(
    [BEFORE - 1, BEFORE, BEFORE + 1, RESTORED_AT - 1, RESTORED_AT, RESTORED_AT + 1]
)


def suffix_at(key: int) -> str:
    return OLDER if key <= BEFORE else OLD if key <= RESTORED_AT else SUFFIX


@given(st.lists(around_restores))
def test_a_job_has_the_id_of_the_database_that_it_was_stored_in(keys: list[int]) -> None:
    texts = RESTORED.texts(keys)
    assert texts == [IdCodec(suffix_at(key)).text(key) for key in keys]
    assert [RESTORED.key(text) for text in texts] == keys
    assert sorted(texts) == [RESTORED.text(key) for key in sorted(keys)]


@given(around_restores, st.sampled_from([SUFFIX, OLD, OLDER]))
def test_an_id_of_the_time_after_a_backup_is_none_of_the_restored_database(
    key: int, suffix: str
) -> None:
    text = IdCodec(suffix).text(key)
    assert RESTORED.key(text) == (key if suffix == suffix_at(key) else None)


@given(around_restores, st.sampled_from([SUFFIX, OLD, OLDER]))
def test_a_cursor_of_any_database_stands_where_its_text_stands(key: int, suffix: str) -> None:
    text = IdCodec(suffix).text(key)
    before, behind = RESTORED.position(text)
    if suffix == suffix_at(key):
        assert (before, behind) == (key, key)
    else:
        assert before + 1 == behind
        assert before < 0 or RESTORED.text(before) < text
        assert text < RESTORED.text(behind)


def test_a_database_that_was_never_restored_has_the_plain_codec() -> None:
    assert type(codec_of(SUFFIX)) is IdCodec
