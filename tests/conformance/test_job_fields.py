"""The fields of a job that have one form wherever they appear come back as they were sent."""

from zq.model.job import CarriedFields, SettingFields

from .client import Client, new_job
from .crons import entry

EVERY_FIELD = {
    "retry_limit": 3,
    "backoff": {"exponent": 1.5, "base_ms": 10, "jitter_ms": 20},
    "retention": {"completed_ms": 60_000, "dead_ms": 90_000},
    "lease_ms": 5_000,
    "dead_letter": "graves",
    "dead_letter_after": 2,
    "stall_limit": 4,
    "to": "d1",
    "fair_key": "acme",
    "fair_weight": 2.5,
    "content_type": "text/plain",
    "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
}
"""A value for each field that is declared for all places."""


def told(document: dict[str, object]) -> dict[str, object]:
    return {name: document.get(name) for name in EVERY_FIELD}


def test_every_field_is_tried() -> None:
    names = (*SettingFields.__struct_fields__, *CarriedFields.__struct_fields__)

    assert tuple(EVERY_FIELD) == names


async def test_a_stored_job_and_an_entry_of_cron_have_them(client: Client) -> None:
    device = {"instance": "i1", "version": "0.1.0", "now": 0}
    assert (await client.call("PUT", "/devices/d1", device)).status == 200
    stored = (await client.post("/jobs", new_job(**EVERY_FIELD))).doc
    put = await client.call("PUT", "/crons/g", {"entries": [entry(job=EVERY_FIELD)]})

    assert put.status == 200, put.doc
    assert told(stored) == EVERY_FIELD
    assert told(await client.job(stored["id"])) == EVERY_FIELD
    assert told(put.doc["entries"][0]["job"]) == EVERY_FIELD
