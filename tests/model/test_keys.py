"""The text form of keys, and finding one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zq.model.keys import InvalidKey, Key, KeyRing, KeyScope, digest_of, make_key, parse_keys
from zq.model.reach import EVERYWHERE, reach_of

DIGEST = "sha256:" + digest_of(b"secret").hex()


def test_a_file_is_keys_and_lines_that_say_nothing() -> None:
    text = f"# keys\n\n  shop {DIGEST}\tenqueue,read  shop-,my orders-  \n\t# end\nops - manage"

    ring = parse_keys(text, "keys")

    assert ring.keys == (
        Key(
            "shop",
            digest_of(b"secret"),
            frozenset({KeyScope.ENQUEUE, KeyScope.READ}),
            reach_of(["shop-", "my orders-"]),
        ),
        Key("ops", None, frozenset({KeyScope.MANAGE}), EVERYWHERE),
    )


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("shop", "a line is: name secret scopes"),
        (f"shop {DIGEST}", "a line is: name secret scopes"),
        (f"sh:op {DIGEST} read", "'sh:op' cannot be a key's name"),
        (f"{'x' * 65} {DIGEST} read", "cannot be a key's name"),
        ("shop secret read", "the second field must be sha256:"),
        (f"shop {DIGEST.upper()} read", "the second field must be sha256:"),
        (f"shop {DIGEST}0 read", "the second field must be sha256:"),
        (f"shop {DIGEST} write", "unknown scope 'write'"),
        (f"shop {DIGEST} read,", "unknown scope ''"),
        (f"shop {DIGEST} Read", "unknown scope 'Read'"),
        (f"shop {DIGEST} enqueue,budgets=-1", "budgets=-1: a quota is one number"),
        (f"shop {DIGEST} enqueue,budgets=", "budgets=: a quota is one number"),
        (f"shop {DIGEST} budgets=1,enqueue,budgets=2", "a quota is one number"),
        (f"shop {DIGEST} manage,budgets=1", "without a prefix manages all budgets"),
        (f"shop {DIGEST} read shop-,", "a queue prefix must not be empty"),
        (f"shop {DIGEST} read shop-*", "must not contain '*'"),
        (f"shop {DIGEST} read a, b", "without blanks at its ends"),
        (f"shop {DIGEST} read a\x07", "printable"),
        ("first - read", "a key named 'first' already"),
        (f"shop {'sha256:' + digest_of(b'other').hex()} read", "same secret as 'first'"),
    ],
)
def test_a_line_that_breaks_a_rule_is_named_with_the_rule(line: str, says: str) -> None:
    first = f"first sha256:{digest_of(b'other').hex()} take"

    with pytest.raises(InvalidKey) as refusal:
        parse_keys(f"{first}\n# between\n{line}\n", "/etc/keys")

    assert str(refusal.value).startswith("/etc/keys, line 3: ")
    assert says in str(refusal.value)


def test_a_secret_written_by_mistake_is_not_repeated() -> None:
    with pytest.raises(InvalidKey) as refusal:
        parse_keys("shop S3cr3t read\n", "keys")

    assert "S3cr3t" not in str(refusal.value)


prefixes = st.text(
    st.characters(codec="utf-8", exclude_characters=",*?[]{}\\\0"), min_size=1, max_size=5
).filter(lambda text: text == text.strip() and text.isprintable())


@given(
    name=st.from_regex(r"[A-Za-z0-9._@-]{1,64}", fullmatch=True),
    secret=st.none() | st.binary(),
    scopes=st.sets(st.sampled_from(KeyScope), min_size=1),
    prefixes=st.lists(prefixes, max_size=3),
    quota=st.none() | st.integers(0, 9_999_999),
)
def test_what_is_written_reads_back_as_the_same_key(
    name: str,
    secret: bytes | None,
    scopes: set[KeyScope],
    prefixes: list[str],
    quota: int | None,
) -> None:
    digest = None if secret is None else digest_of(secret)
    limited = quota is not None and (prefixes or KeyScope.MANAGE not in scopes)
    words = [*scopes, f"budgets={quota}"] if limited else scopes
    key = make_key(name, digest, ",".join(words), prefixes)

    assert parse_keys(key.line, "keys").keys == (key,)


def test_a_key_is_found_by_its_secret_or_its_name_only() -> None:
    keys = [make_key(f"k{n}", digest_of(b"s%d" % n), "read", []) for n in range(3)]
    ring = KeyRing([*keys, make_key("certified", None, "read", [])])

    assert [ring.with_secret(b"s%d" % n) for n in range(3)] == keys
    assert ring.with_secret(b"") is None
    assert ring.with_secret(digest_of(b"s0")) is None
    assert ring.named("k1") == keys[1]
    assert ring.named("certified") is not None
    assert ring.named("k3") is None


def test_prefixes_alone_decide_what_a_key_reaches() -> None:
    key = make_key("shop", None, "read", ["shop-", "mail"])

    assert key.reach.covers("shop-")
    assert key.reach.covers("mailbox")
    assert not key.reach.covers("shop")
    assert not key.reach.covers("Mail")
