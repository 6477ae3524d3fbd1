"""Avro schemas of topics: which payloads they let in, and what is said of others."""

import json
import re
import string
from typing import Any

import pytest

from zq.features.schemas.model import (
    BYTES_A_STEP,
    MOST_NESTED,
    Comparison,
    InvalidSchema,
    PayloadSchema,
    SchemaMismatch,
)
from zq.features.schemas.tick import SchemaRules

from .messages import Doc, Messages

ORDER = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "n", "type": "int"},
        {"name": "note", "type": ["null", "string"]},
        {"name": "tag", "type": "string", "default": "none"},
        {
            "name": "buyer",
            "type": {
                "type": "record",
                "name": "Buyer",
                "fields": [
                    {"name": "id", "type": "long"},
                    {"name": "of", "type": ["null", "Buyer"]},
                ],
            },
            "default": {"id": 0, "of": None},
        },
        {"name": "kind", "type": {"type": "enum", "name": "K", "symbols": ["A"]}, "default": "A"},
        {"name": "items", "type": {"type": "array", "items": "int"}, "default": []},
        {"name": "map", "type": {"type": "map", "values": "int"}, "default": {}},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}, "default": 0},
        {"name": "x", "type": "double", "default": 0},
    ],
}
GOOD = {"n": 1, "note": None}


def check(schema: PayloadSchema, payload: str) -> None:
    for _ in schema.checking(payload):
        pass


async def put(api: Messages, schema: Any, topic: str = "t") -> Doc:
    body = {"schema_json": json.dumps(schema)}
    reply = await api.native.call("PUT", f"/api/topic-schemas/{topic}", body)
    assert reply.status == 200, reply.body
    doc: Doc = reply.doc
    return doc


async def test_a_payload_has_to_match_the_schema_of_its_topic(api: Messages) -> None:
    await put(api, ORDER)
    await api.enqueue("t", json.dumps(GOOD))
    reply = await api.post("/messages", {"topic": "t", "payload": '{"note": "x"}'})
    assert reply.status == 422
    assert reply.error == 'payload does not match topic schema: missing required field "n"'
    await api.enqueue("other", "no JSON at all")
    assert len(await api.list("t")) == 1
    assert (await api.send("DELETE", "/topic-schemas/t")).status == 204
    await api.enqueue("t", "no JSON at all")


async def test_schemas_count_their_versions_and_outlive_a_restart(api: Messages) -> None:
    assert (await api.get("/topic-schemas")).doc == {"items": []}
    assert (await api.get("/topic-schemas/t")).status == 404
    first = await put(api, "string")
    assert first == {
        "topic": "t",
        "schema_json": '"string"',
        "version": 1,
        "updated_at": "2025-06-15T15:06:40Z",
    }
    api.site.clock.advance(1_000)
    second = await put(api, ORDER)
    assert (second["version"], second["updated_at"]) == (2, "2025-06-15T15:06:41Z")
    await put(api, "int", topic="a")
    assert [each["topic"] for each in (await api.get("/topic-schemas")).doc["items"]] == ["a", "t"]
    await api.site.restart()
    assert (await api.get("/topic-schemas/t")).doc == second
    assert (await api.post("/messages", {"topic": "t", "payload": "{}"})).status == 422
    for _ in range(2):
        assert (await api.send("DELETE", "/topic-schemas/t")).status == 204
    assert (await put(api, ORDER))["version"] == 1


@pytest.mark.parametrize(
    "body",
    [
        *("", "{", "1", "null", "[]x", '"strin"'),
        '{"type":"record","name":"R","fields":[{"name":"a","type":"Nobody"}]}',
        '{"type":"record","name":"R","fields":1}',
        '{"type":"record","name":"R"}',
        '{"type":"record","name":"1R","fields":[]}',
        '{"type":"record","name":"R","fields":[{"name":"a b","type":"int"}]}',
        '{"type":"record","name":"R","fields":[{"name":["a"],"type":"int"}]}',
        '{"type":"record","name":"R","fields":[{"name":"a","type":"int"},{"name":"a","type":"int"}]}',
        '{"type":"record","name":"R","fields":[{"name":"a","type":["int","int"]}]}',
        '{"type":"array","items":["int",["null"]]}',
        '{"type":"map","values":{"type":"enum","name":"E","symbols":[]}}',
        '{"type":"fixed","name":"F","size":-1}',
        " " * 70_000,
    ],
    ids=lambda body: str(len(body)),
)
def test_what_is_no_avro_is_refused(body: str) -> None:
    with pytest.raises(InvalidSchema):
        PayloadSchema(body)


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        ("{}", "it lacks 'type'"),
        ("[1]", "it is no schema"),
        ('"strin"', "there is no type 'strin'"),
        ("x", "it is not JSON"),
    ],
)
def test_a_refusal_says_what_is_wrong_with_a_schema(body: str, fault: str) -> None:
    with pytest.raises(InvalidSchema, match=fault):
        PayloadSchema(body)


async def test_a_refused_schema_changes_nothing(api: Messages) -> None:
    await put(api, ORDER)
    reply = await api.native.call("PUT", "/api/topic-schemas/t", {"schema_json": "{"})
    assert reply.status == 400 and reply.error.startswith("invalid Avro schema")
    assert (await api.native.call("PUT", "/api/topic-schemas/t", {})).status == 400
    assert (await api.get("/topic-schemas/t")).doc["version"] == 1


@pytest.mark.parametrize(
    "change",
    [
        *({"n": -(2**31)}, {"note": "x"}, {"kind": "B"}, {"items": ["x"]}, {"map": {"a": "x"}}),
        *({"x": 1}, {"at": 2**62}, {"more": [1]}, {"buyer": {"id": 1, "of": None}}),
        {"buyer": {"id": 1, "of": {"id": 2, "of": None}}},
    ],
    ids=json.dumps,
)
def test_what_passes(change: dict[str, Any]) -> None:
    """Members that are not declared pass, and nothing within enums, arrays and maps is checked."""
    check(PayloadSchema(json.dumps(ORDER)), json.dumps(GOOD | change))


@pytest.mark.parametrize(
    ("change", "field"),
    [
        # The original lets a number in quotes pass.
        *(({"n": "1"}, "n"), ({"n": 1.5}, "n"), ({"n": True}, "n"), ({"n": 2**31}, "n")),
        *(({"n": None}, "n"), ({"note": 1}, "note"), ({"tag": None}, "tag"), ({"kind": 1}, "kind")),
        *(({"items": {}}, "items"), ({"map": []}, "map"), ({"x": "1"}, "x"), ({"at": "1"}, "at")),
        *(({"buyer": 1}, "buyer"), ({"buyer": {"of": None}}, "buyer.id")),
        ({"buyer": {"id": 1, "of": {"id": "x", "of": None}}}, "buyer.of"),
    ],
    ids=json.dumps,
)
def test_what_does_not_pass(change: dict[str, Any], field: str) -> None:
    with pytest.raises(SchemaMismatch, match=re.escape(f'"{field}"')):
        check(PayloadSchema(json.dumps(ORDER)), json.dumps(GOOD | change))


@pytest.mark.parametrize("payload", ["[1]", "1", '"x"', "null"])
def test_a_schema_that_is_no_record_asks_for_json_only(payload: str) -> None:
    check(PayloadSchema('"int"'), json.dumps(payload))
    with pytest.raises(SchemaMismatch, match="expected an object"):
        check(PayloadSchema(json.dumps(ORDER)), json.dumps(payload))
    with pytest.raises(SchemaMismatch, match="not valid JSON"):
        check(PayloadSchema('"int"'), json.dumps("x" + payload))


def a_list(names: str, known: str = "") -> Doc:
    """A record whose field `next` is null, or a record of any of these names."""
    first, rest = names[0], names[1:]
    inner = [a_list(rest, known + first)] if rest else []
    branches = ["null", *known, first, *inner]
    return {"type": "record", "name": first, "fields": [{"name": "next", "type": branches}]}


def nested(depth: int, leaf: Any) -> str:
    """An object whose field `next` is such an object, and so on."""
    for _ in range(depth):
        leaf = {"next": leaf}
    return json.dumps(leaf)


@pytest.mark.parametrize("leaf", [None, 1], ids=["good", "bad"])
def test_an_object_is_compared_once_with_each_branch_of_its_union(leaf: Any) -> None:
    """The original compares as long as it takes, which doubles with each further level."""
    schema = PayloadSchema(json.dumps(a_list("ABCDEF")))
    assert schema._record is not None
    comparison = Comparison()
    fault = comparison.fault(schema._record, json.loads(nested(MOST_NESTED, leaf)))
    assert (fault is None) is (leaf is None)
    assert comparison.compared < MOST_NESTED * 6 * 6 * 2


def test_a_payload_that_can_match_in_too_many_ways_is_refused() -> None:
    names = string.ascii_letters
    branches = ["null"] + [
        {"type": "record", "name": name, "fields": [{"name": "next", "type": list(names[: n + 1])}]}
        for n, name in enumerate(names)
    ]
    fields = [{"name": "next", "type": branches}]
    schema = PayloadSchema(json.dumps({"type": "record", "name": "Root", "fields": fields}))
    with pytest.raises(SchemaMismatch, match="more than 10000 comparisons"):
        check(schema, nested(MOST_NESTED, 1))


async def test_a_bulk_is_compared_in_slices(api: Messages) -> None:
    await put(api, ORDER)
    turns = api.site.server.engine.turns
    job = {"queue": "t", "type": "t", "payload": GOOD}
    for jobs, waited in ((20, False), (5_000, True)):
        before = turns.waited
        reply = await api.native.call("POST", "/jobs/bulk", {"jobs": [job] * jobs})
        assert reply.status == 201, reply.body
        assert (turns.waited > before) is waited


async def test_a_long_payload_is_decoded_in_slices(api: Messages) -> None:
    await put(api, ORDER)
    turns = api.site.server.engine.turns
    long = GOOD | {"more": {f"k{n}": [n] for n in range(20_000)}}
    before = turns.waited
    await api.enqueue("t", json.dumps(long))
    assert turns.waited - before >= 5
    for bad in (json.dumps(long)[:-1], json.dumps(long) + "]", json.dumps(long | {"n": "x"})):
        assert (await api.post("/messages", {"topic": "t", "payload": bad})).status == 422


async def test_the_payloads_of_one_request_have_a_bound_together(
    api: Messages, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("zq.features.schemas.service_running.MOST_COMPARED_TOGETHER", 1_000)
    await put(api, ORDER)
    job = {"queue": "t", "type": "t", "payload": GOOD}
    reply = await api.native.call("POST", "/jobs/bulk", {"jobs": [job] * 1_000})
    assert reply.status == 413 and "takes more than 1000 steps" in reply.error
    assert await api.list("t") == []


@pytest.mark.parametrize("more", [0, 1_000], ids=["comparisons", "bytes"])
def test_comparisons_and_bytes_count_as_steps(more: int) -> None:
    schema = PayloadSchema(json.dumps(ORDER))
    payload = json.dumps(GOOD | {"more": "x" * more * BYTES_A_STEP})
    rules = SchemaRules({"q": schema})
    for _ in range(3):
        assert all(pause is None for pause in rules.refusal(payload, ["free", "q"]))
    assert rules.steps == 3 * sum(schema.checking(payload)) > 3 * more


async def test_payloads_that_a_transaction_leaves_come_in_the_next(
    api: Messages, monkeypatch: pytest.MonkeyPatch
) -> None:
    await put(api, ORDER)
    job = {"queue": "a", "type": "t", "payload": GOOD}
    await api.native.call("POST", "/jobs/bulk", {"jobs": [job] * 50})
    monkeypatch.setattr("zq.tick.fitting.MOST_STEPS", 100)

    reply = await api.native.call("PATCH", "/jobs?queue=a", {"queue": "t"})

    assert (reply.status, reply.doc) == (200, {"patched": 50})
    assert len(await api.list("t")) == 50


async def test_a_deep_payload_is_no_danger(api: Messages) -> None:
    await put(api, ORDER)
    reply = await api.post("/messages", {"topic": "t", "payload": "[" * 100_000})
    assert reply.status == 422
