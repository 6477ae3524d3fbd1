"""The identity of a store: the name of its history, and the suffix of its ids."""

import secrets
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import msgspec

from zq.model.ids import ALPHABET, SUFFIX_LENGTH, FormerSuffix
from zq.store.api import as_json


def new_identity() -> dict[str, str]:
    """Make an identity that no other store has."""
    return {
        "epoch": secrets.token_hex(16),
        "id_suffix": "".join(secrets.choice(ALPHABET) for _ in range(SUFFIX_LENGTH)),
    }


def former_in(meta: Mapping[str, Any]) -> list[FormerSuffix]:
    """The suffixes of ids from before a store was restored, the oldest first.

    There are none if that cannot be read.
    """
    with suppress(msgspec.MsgspecError, KeyError):
        return msgspec.json.decode(str(meta["former_suffixes"]), type=list[FormerSuffix])
    return []


def renewed(meta: Mapping[str, str], highest: int) -> dict[str, str]:
    """The values of `meta` that change when a copy of a store becomes one of its own.

    Its jobs keep their ids, of which `highest` is the highest key. Its new jobs get ids that the
    original never gives.
    """
    last = FormerSuffix(max(int(meta["high_water"]), highest), meta["id_suffix"])
    return {
        **new_identity(),
        "high_water": str(last.last_key),
        "former_suffixes": as_json([*former_in(meta), last]),
    }
