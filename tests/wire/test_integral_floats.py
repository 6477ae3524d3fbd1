"""Integral floats as integers: in every field of a body, and at a bounded cost for others."""

import json
from typing import Any

import msgspec
import pytest

from zq.features.budgets.model_jobs import draws_in
from zq.features.crons.verbs import decode_group, drafts_in
from zq.wire import codecs
from zq.wire.bodies import Limits, decode_job
from zq.wire.codecs import JSON

LIMITS = Limits(1 << 20, 1 << 20, 100)


def test_the_deepest_field_of_a_body_may_be_a_float() -> None:
    job = {
        "queue": "q",
        "type": "t",
        "payload": {"a": 1.0},
        "backoff": {"exponent": 2.0, "base_ms": 5.0, "jitter_ms": 1.0},
        "budgets": [{"key": "b", "cost": 3.0}],
    }
    entries = [{"name": "n", "expression": "* * * * *", "job": job}]
    sent = decode_group(json.dumps({"entries": entries}).encode(), JSON, LIMITS)
    (draft,) = drafts_in(sent, JSON, LIMITS)
    made = draft.job
    assert made.options is not None and made.options.backoff is not None
    assert made.options.backoff.base_ms == 5
    draws = draws_in(made.options)
    assert draws is not None
    assert [draw.cost for draw in draws] == [3]
    assert made.payload == '{"a": 1.0}'


@pytest.mark.parametrize("around", ['{"x":%s}', "[%s]"])
def test_a_deep_value_is_not_copied_at_each_level(
    around: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked_at = 0

    class Counting:
        def __init__(self, decoder: msgspec.json.Decoder[Any]) -> None:
            self._decoder = decoder

        def decode(self, text: bytes) -> Any:
            nonlocal looked_at
            looked_at += len(text)
            return self._decoder.decode(text)

    deep = json.dumps("1.0" * 10_000)
    for _ in range(100):
        deep = around % deep
    body = f'{{"queue":"q","type":"t","payload":1,"priority":5.0,"unknown":{deep}}}'
    for name in ("_fields", "_items"):
        monkeypatch.setattr(codecs, name, Counting(getattr(codecs, name)))
    assert decode_job(body.encode(), JSON, LIMITS).priority == 5
    assert looked_at < 10 * len(body)
