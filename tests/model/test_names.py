"""Names of queues and job types."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zq.model.errors import InvalidRequest
from zq.model.names import check_name

REFUSED = ",\0*?[]{}\\"


@given(st.text(min_size=1).filter(lambda name: not set(name) & set(REFUSED)))
def test_anything_without_a_reserved_character_is_a_name(name: str) -> None:
    assert check_name("queue", name) == name


@pytest.mark.parametrize("name", ["a/b", "with space", ".", "ünïcødé", "日本", "a:b#c%2F", "\t"])
def test_slashes_spaces_and_unicode_are_fine(name: str) -> None:
    assert check_name("type", name) == name


@given(st.text(), st.sampled_from(REFUSED), st.text())
def test_one_reserved_character_anywhere_is_refused(before: str, char: str, after: str) -> None:
    with pytest.raises(InvalidRequest):
        check_name("queue", before + char + after)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("", "queue must not be empty"),
        ("a,b", "queue must not contain ','"),
        ("a\0b", "queue must not contain NUL"),
        *((f"a{char}b", f"queue must not contain '{char}' (reserved)") for char in "*?[]{}\\"),
    ],
)
def test_the_message_names_the_field_and_the_rule(name: str, message: str) -> None:
    with pytest.raises(InvalidRequest) as refusal:
        check_name("queue", name)
    assert refusal.value.message == message


def test_the_same_name_is_judged_for_each_field_by_itself() -> None:
    for field in ("queue", "type"):
        with pytest.raises(InvalidRequest, match=f"^{field} must not be empty$"):
            check_name(field, "")
