"""Unknown fields of bodies, and unknown parameters.

Zizq's routes ignore unknown fields, and others refuse them by name. To a client that sends
`Zq-Strict: 1`, all routes refuse both.
"""

from typing import Any

import pytest

from zq.http.api.description.openapi import openapi
from zq.http.api.description.operations import OPERATIONS
from zq.http.api.description.reference import routes

from .client import Client, Doc, new_job

Key = tuple[str, str]

ODD = {"priorty": 5}

ENTRY = {"name": "e", "expression": "0 9 * * *", "job": new_job()}
BUDGET = {"allocation": 2, "strategy": {"type": "while_in_flight"}}
BINDING = {"key": "b", "cost": 1}

ZIZQ: dict[Key, tuple[Doc, int]] = {
    ("POST", "/jobs"): (new_job(), 201),
    ("POST", "/jobs/bulk"): ({"jobs": [new_job() | ODD]}, 201),
    ("PATCH", "/jobs"): ({"priority": 1}, 200),
    ("PATCH", "/jobs/{id}"): ({"priority": 1}, 200),
    ("POST", "/jobs/success"): ({"ids": ["{id}"]}, 204),
    ("POST", "/jobs/{id}/success"): ({}, 204),
    ("POST", "/jobs/{id}/failure"): ({"message": "m"}, 200),
    ("PUT", "/crons/{group}"): ({"entries": [ENTRY | ODD]}, 200),
    ("PATCH", "/crons/{group}"): ({"paused": True}, 200),
    ("POST", "/crons/{group}/entries"): (ENTRY | {"name": "another"}, 201),
    ("PUT", "/crons/{group}/entries/{entry}"): (ENTRY, 200),
    ("PATCH", "/crons/{group}/entries/{entry}"): ({"paused": True}, 200),
    ("POST", "/budgets/{key}"): (BUDGET, 409),
    ("PUT", "/budgets/{key}"): (BUDGET, 200),
    ("PATCH", "/budgets/{key}"): ({"allocation": 3}, 200),
    ("PUT", "/jobs/{id}/budgets"): ({"budgets": [BINDING | ODD]}, 422),
    ("POST", "/jobs/{id}/budgets/{key}"): ({"cost": 1}, 422),
    ("PUT", "/jobs/{id}/budgets/{key}"): ({"cost": 1}, 422),
    ("PATCH", "/jobs/{id}/budgets/{key}"): ({"cost": 1}, 422),
    ("POST", "/jobs/budgets/{key}"): ({"cost": 1}, 200),
    ("PUT", "/jobs/budgets/{key}"): ({"cost": 1}, 200),
    ("PATCH", "/jobs/budgets/{key}"): ({"cost": 1}, 200),
}
"""Bodies of Zizq's routes, with what they are answered about a budget and a job that are there."""

BACKOFF = {"exponent": 1, "base_ms": 1, "jitter_ms": 1}
RATED = {"allocation": 2, "strategy": {"type": "time_based", "duration_ms": 1_000}}
FULL_JOB = new_job(
    backoff=BACKOFF,
    retention={"dead_ms": 5},
    dedupe={"id": "n"},
    budgets=[{"key": "n", "create_with": RATED}],
)
HOST = new_job(batch={"key": "k", "when": "true", "fold": "."})
FULL: dict[Key, Doc] = {
    ("POST", "/jobs"): FULL_JOB,
    ("POST", "/jobs/bulk"): {"jobs": [FULL_JOB, HOST]},
    ("PATCH", "/jobs"): {"backoff": BACKOFF, "retention": {"dead_ms": 5}},
    ("PATCH", "/jobs/{id}"): {"backoff": BACKOFF, "retention": {"dead_ms": 5}},
    ("POST", "/jobs/success"): {"items": [{"id": "{id}", "retention": {"dead_ms": 5}}]},
    ("POST", "/jobs/{id}/success"): {"retention": {"completed_ms": 5}},
    ("PUT", "/crons/{group}"): {"entries": [ENTRY | {"job": FULL_JOB}]},
    ("POST", "/crons/{group}/entries"): ENTRY | {"name": "another", "job": FULL_JOB},
    ("PUT", "/crons/{group}/entries/{entry}"): ENTRY | {"job": FULL_JOB},
    ("PUT", "/budgets/{key}"): RATED,
    ("PATCH", "/budgets/{key}"): RATED,
    ("PUT", "/jobs/{id}/budgets"): {"budgets": [{"key": "n", "create_with": RATED}]},
    ("POST", "/jobs/{id}/budgets/{key}"): {"cost": 1, "create_with": RATED},
    ("PUT", "/jobs/{id}/budgets/{key}"): {"cost": 1, "create_with": RATED},
    ("POST", "/jobs/budgets/{key}"): {"cost": 1, "create_with": RATED},
    ("PUT", "/jobs/budgets/{key}"): {"cost": 1, "create_with": RATED},
}
"""Bodies of Zizq's routes with every object that they may hold."""

LEASE = {"lease_ms": 1_000}
OURS: dict[Key, list[Doc]] = {
    ("POST", "/jobs/{id}/progress"): [{"data": 1}],
    ("POST", "/queues/{queue}/claim"): [{"holder": "h"}],
    ("POST", "/jobs/extend"): [{"items": [{"id": "{id}"}], **LEASE}],
    ("POST", "/jobs/release"): [{"items": [{"id": "{id}"}]}],
    ("POST", "/jobs/{id}/extend"): [LEASE],
    ("POST", "/jobs/{id}/release"): [{}],
    ("PUT", "/queues/{queue}/settings"): [
        {"backoff": {"exponent": 1, "base_ms": 1, "jitter_ms": 1}},
        {"retention": {"dead_ms": 5}},
    ],
    ("PATCH", "/queues/{queue}/settings"): [
        {"backoff": {"exponent": 1, "base_ms": 1, "jitter_ms": 1}},
        {"retention": {"dead_ms": 5}},
    ],
    ("POST", "/jobs/requeue"): [{"limit": 1}],
    ("POST", "/jobs/redrive"): [{"limit": 1}],
    ("POST", "/jobs/by-key/cancel"): [{"force": True}],
    ("POST", "/jobs/cancel"): [{"force": True}],
    ("POST", "/jobs/{id}/cancel"): [{"force": True}],
    ("PUT", "/queues/{queue}/schema"): [{"schema": "string"}],
    ("POST", "/queues/{queue}/replay"): [{"since": 1}],
    ("POST", "/budgets/{key}/hold"): [{"for_ms": 1}],
    ("PUT", "/queues/{queue}/fair/{key}"): [{"weight": 2}],
    ("POST", "/devices/{name}/fetch"): [{"instance": "i"}],
    ("POST", "/devices/{name}/history"): [{"instance": "i"}],
    ("POST", "/devices/jobs"): [{"to": "d*", "job": new_job()}],
    ("PUT", "/forward/{name}"): [{"queues": ["out*"], "url": "http://127.0.0.1:9"}],
    ("POST", "/forward/{name}/resume"): [{}],
    ("PUT", "/devices/{name}"): [
        {"instance": "i", "version": "1", "now": 0, "lanes": [{"name": "main"}]}
    ],
    ("PUT", "/cleaning"): [{"schedule": ""}],
    ("POST", "/marks"): [{"text": "release"}],
    ("PATCH", "/jobs/{id}/retention"): [{"dead_ms": 5}],
}
"""Bodies of our routes, in which each object is ours, or no less strict."""

OURS_ON_THEIR_ROUTES: dict[Key, Doc] = {
    ("POST", "/jobs"): new_job(dedupe={"id": "n"}),
    ("POST", "/jobs/success"): {"items": [{"id": "{id}", "retention": {"completed_ms": 5}}]},
}
"""Bodies of Zizq's routes with objects of ours."""


def spoilt(doc: Any) -> list[Any]:
    """The document with an odd field in each of its objects in turn."""
    if isinstance(doc, list):
        return [
            [*doc[:at], odd, *doc[at + 1 :]] for at in range(len(doc)) for odd in spoilt(doc[at])
        ]
    if not isinstance(doc, dict):
        return []
    inner = [doc | {name: odd} for name in doc for odd in spoilt(doc[name])]
    return [doc | ODD, *inner]


async def made(client: Client) -> Doc:
    assert (await client.call("PUT", "/crons/g", {"entries": [ENTRY]})).status == 200
    assert (await client.call("POST", "/budgets/b", BUDGET)).status == 201
    await client.enqueue(queue="q", unique_key="k", unique_while="exists", budgets=[BINDING])
    # Nobody waits for the next job of this queue, as a stream would.
    job: Doc
    (job,) = (await client.post("/queues/q/claim", {"holder": "h"})).doc["jobs"]
    return job


async def made_anew(client: Client) -> Doc:
    """What `made` makes, and nothing else."""
    assert (await client.send("POST", "/reset")).status == 204
    return await made(client)


async def sent(client: Client, key: Key, doc: Any, job: Doc, query: str = "") -> Any:
    method, path = key
    places = {"id": job["id"], "queue": "q", "group": "g", "entry": "e", "key": "b"}
    places |= {"attempt": "1", "target": "t", "dedupe": "d", "name": "x"}
    path = path.format_map(places)
    path += query or ("?key=k" if "by-key" in path else "")

    def named(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: named(inner) for name, inner in value.items()}
        if isinstance(value, list):
            return list(map(named, value))
        return job["id"] if value == "{id}" else value

    if doc is None:
        return await client.send(method, path)
    return await client.call(method, path, named(doc))


def test_every_body_is_known_to_be_zizqs_or_ours() -> None:
    bodies = {key for key, operation in OPERATIONS.items() if operation.body is not None}
    assert bodies == ZIZQ.keys() | OURS.keys()


async def test_zizqs_routes_pass_over_what_they_do_not_know(client: Client) -> None:
    for key, (body, status) in ZIZQ.items():
        job = await made_anew(client)
        assert (await sent(client, key, body | ODD, job)).status == status, key


async def test_so_they_do_inside_of_zizqs_objects(client: Client) -> None:
    odd = {"backoff": {"exponent": 1, "base_ms": 1, "jitter_ms": 1} | ODD}
    odd |= {"retention": {"dead_ms": 5} | ODD}
    job = await client.enqueue(**odd)
    assert job["retention"] == {"dead_ms": 5}
    assert (await client.patch(f"/jobs/{job['id']}", odd)).doc["retention"] == {"dead_ms": 5}


async def test_our_routes_refuse_what_they_do_not_know_by_its_name(client: Client) -> None:
    job = await made(client)
    before = await client.job(job["id"])
    settings = (await client.get("/queues/q/settings")).doc
    for key, bodies in OURS.items():
        for odd in [odd for body in bodies for odd in spoilt(body)]:
            reply = await sent(client, key, odd, job)
            assert reply.status == 400, (key, odd)
            assert "unknown field 'priorty'" in reply.error, key
            assert reply.headers["zq-error"] == "unknown_field", key
        assert await client.job(job["id"]) == before, key
        assert (await client.get("/queues/q/settings")).doc == settings, key


@pytest.mark.parametrize("key", OURS_ON_THEIR_ROUTES, ids=" ".join)
async def test_objects_of_ours_are_strict_wherever_they_stand(client: Client, key: Key) -> None:
    job = await made(client)
    for odd in spoilt(OURS_ON_THEIR_ROUTES[key])[1:]:
        reply = await sent(client, key, odd, job)
        assert reply.status == 400, odd
        assert "unknown field 'priorty'" in reply.error
    assert await client.count() == 1
    assert (await client.job(job["id"]))["status"] == "in_flight"


async def test_the_place_of_an_unknown_field_is_told(client: Client) -> None:
    reply = await client.call("POST", "/jobs/release", {"items": [{"id": "x"} | ODD]})
    assert reply.error.endswith(
        ": items[0]: unknown field 'priorty': correct its name, or leave it out"
    )


STRICT = {"zq-strict": "1"}


@pytest.fixture
def strict(client: Client) -> Client:
    client.always |= STRICT
    return client


async def everything(client: Client) -> list[Any]:
    """What a refused request must leave as it is."""
    paths = ("/jobs", "/crons", "/budgets", "/queues/settings", "/sweeps", "/sweeps/ended")
    return [(await client.get(path)).doc for path in paths]


async def test_strict_clients_get_unknown_fields_refused_everywhere(strict: Client) -> None:
    """Every object of a body that Zizq has too, those within others included."""
    job = await made(strict)
    before = await everything(strict)
    for key in ZIZQ:
        for odd in spoilt(FULL.get(key, ZIZQ[key][0])):
            reply = await sent(strict, key, odd, job)
            assert (reply.status, reply.headers["zq-error"]) == (400, "unknown_field"), (key, odd)
            assert "unknown field 'priorty'" in reply.error, key
        assert await everything(strict) == before, key


async def test_strict_clients_are_served_as_others_are(strict: Client) -> None:
    """A body without a typo is read as ever, whatever objects it holds."""
    for key, (body, status) in ZIZQ.items():
        job = await made_anew(strict)
        assert (await sent(strict, key, FULL.get(key, body), job)).status == status, key


def served() -> list[Key]:
    """Every route of the door, but for those whose parameters are the job's own."""
    every = [(route.method, route.path) for route in routes()]
    return [(method, path) for method, path in every if "/push" not in path]


async def test_strict_clients_get_unknown_parameters_refused_everywhere(strict: Client) -> None:
    job = await made(strict)
    before = await everything(strict)
    for key in served():
        doc = ZIZQ[key][0] if key in ZIZQ else OURS.get(key, [None])[0]
        reply = await sent(strict, key, doc, job, "?prioirty=5")
        assert (reply.status, reply.headers["zq-error"]) == (400, "unknown_field"), key
        assert "prioirty" in reply.error, key
        if key[0] != "GET":
            assert await everything(strict) == before, key


async def test_strict_clients_get_bodies_refused_that_would_not_be_read(strict: Client) -> None:
    job = await made(strict)
    before = await everything(strict)
    changing = [key for key in served() if key[0] != "GET" and key not in ZIZQ and key not in OURS]
    assert ("POST", "/forward/{name}/pause") in changing
    for key in changing:
        reply = await sent(strict, key, {"mistake": 1}, job)
        assert reply.status == 400, key
        assert await everything(strict) == before, key


@pytest.mark.parametrize(
    ("path", "doc", "told"),
    [
        ("/jobs", new_job(dedup={"id": "x"}), "unknown field 'dedup'; did you mean 'dedupe'?"),
        (
            "/jobs/bulk",
            {"jobs": [new_job(), new_job(retention={"ded_ms": 1})]},
            "jobs[1].retention: unknown field 'ded_ms'; did you mean 'dead_ms'?",
        ),
        (
            "/crons/g/entries",
            ENTRY | {"job": new_job(budgets=[{"key": "b", "create_wth": {}}])},
            "unknown field 'create_wth'; did you mean 'create_with'?",
        ),
        (
            "/jobs",
            new_job(zz=1),
            "unknown field 'zz': correct its name, or leave it out",
        ),
    ],
)
async def test_the_near_name_is_told(strict: Client, path: str, doc: Doc, told: str) -> None:
    assert (await strict.call("POST", path, doc)).error.endswith(told)


async def test_the_near_name_of_a_parameter_is_told(client: Client) -> None:
    assert (await client.get("/jobs?prioirty=5")).error.endswith("; did you mean `priority`?")


async def test_floats_that_are_whole_do_not_hide_a_typo(strict: Client) -> None:
    reply = await strict.call("POST", "/jobs", new_job(priority=5.0, **ODD))
    assert (reply.status, reply.headers["zq-error"]) == (400, "unknown_field")
    assert (await strict.call("POST", "/jobs", new_job(priority=5.0))).status == 201


async def test_heavy_bodies_are_read_as_strictly(strict: Client) -> None:
    """They are checked in a process of their own, which hands them back as other bytes."""
    jobs = [new_job() for _ in range(4_000)] + [new_job(**ODD, payload="x" * 300_000)]
    reply = await strict.call("POST", "/jobs/bulk", {"jobs": jobs})
    assert (reply.status, reply.headers["zq-error"]) == (400, "unknown_field")
    assert await strict.count() == 0


async def test_a_header_that_is_neither_is_refused(client: Client) -> None:
    client.always = {"zq-strict": "yes"}
    reply = await client.call("POST", "/jobs", new_job())
    assert (reply.status, "Zq-Strict is 1" in reply.error) == (400, True)
    client.always = {"zq-strict": "0"}
    assert (await client.call("POST", "/jobs", new_job(**ODD))).status == 201


def test_the_description_says_which_bodies_are_strict() -> None:
    document = openapi(routes())
    schemas = document["components"]["schemas"]

    def is_strict(key: Key) -> bool:
        content = document["paths"][key[1]][key[0].lower()]["requestBody"]["content"]
        name = content["application/json"]["schema"]["$ref"].rpartition("/")[2]
        return schemas[name].get("additionalProperties") is False

    assert {key for key in ZIZQ | OURS if is_strict(key)} == OURS.keys()
