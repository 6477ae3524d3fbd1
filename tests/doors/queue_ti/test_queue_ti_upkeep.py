"""What queue-ti's operators set: the schedule of the delete reaper, and registration of topics."""

import asyncio

import pytest
from conformance.streams import pause

from zq.setting import ConfigError

from .messages import Messages

SCHEDULE = "/admin/delete-reaper/schedule"
HOUR_MS = 3_600_000
YEAR_MS = 365 * 24 * HOUR_MS


async def reschedule(api: Messages, schedule: str) -> int:
    body = {"schedule": schedule}
    return (await api.native.call("PUT", f"/api{SCHEDULE}", body)).status


async def expire_one(api: Messages) -> None:
    await api.configure("short", message_ttl_seconds=1)
    await api.enqueue("short")
    api.site.clock.advance(1_500)
    assert (await api.one("short"))["status"] == "expired"


async def test_a_schedule_deletes_what_has_expired_at_its_times(api: Messages) -> None:
    assert (await api.get(SCHEDULE)).doc == {"schedule": "", "active": False}
    await expire_one(api)
    assert await reschedule(api, "@every 1h") == 200
    assert (await api.get(SCHEDULE)).doc == {"schedule": "@every 1h", "active": True}
    api.site.clock.advance(HOUR_MS - 1)
    assert len(await api.list("short")) == 1, "not before its time"
    api.site.clock.advance(1)
    await emptied(api, "short")
    await expire_one(api)
    api.site.clock.advance(HOUR_MS - 1_500)
    await emptied(api, "short")
    (sweep, _) = (await api.native.get("/sweeps/ended")).doc["sweeps"]
    assert (sweep["verb"], sweep["reason"]) == ("delete", "the schedule of cleaning")


@pytest.mark.parametrize("schedule", ["@every 1h", "CRON_TZ=UTC 0 * * * *"])
async def test_a_schedule_goes_on_after_the_clock_was_years_ahead(
    api: Messages, schedule: str
) -> None:
    assert await reschedule(api, schedule) == 200
    await expire_one(api)
    api.site.clock.step(3 * YEAR_MS)
    api.site.clock.advance(HOUR_MS)
    await emptied(api, "short")
    api.site.clock.step(-3 * YEAR_MS)
    await expire_one(api)

    api.site.clock.advance(HOUR_MS + 60_000)

    await emptied(api, "short")


async def test_a_schedule_that_means_nothing_changes_nothing(api: Messages) -> None:
    assert await reschedule(api, "@daily") == 200
    reply = await api.native.call("PUT", f"/api{SCHEDULE}", {"schedule": "every day"})
    assert reply.status == 422 and reply.error.startswith("invalid cron schedule: ")
    assert (await api.native.call("PUT", f"/api{SCHEDULE}", {})).status == 400
    assert (await api.get(SCHEDULE)).doc == {"schedule": "@daily", "active": True}
    assert await reschedule(api, "") == 200
    assert (await api.get(SCHEDULE)).doc == {"schedule": "", "active": False}


@pytest.mark.parametrize(
    "settings", [{"queue_ti_delete_reaper_schedule": "@every 1h"}], ids=["configured"]
)
async def test_what_was_set_over_http_comes_before_the_configuration(api: Messages) -> None:
    assert (await api.get(SCHEDULE)).doc["schedule"] == "@every 1h"
    assert await reschedule(api, "CRON_TZ=UTC 0 3 * * *") == 200
    await api.site.restart()
    assert (await api.get(SCHEDULE)).doc["schedule"] == "CRON_TZ=UTC 0 3 * * *"
    await expire_one(api)
    api.site.clock.advance(2 * HOUR_MS)
    assert len(await api.list("short")) == 1, "the configured interval has no say"
    # It is 15:06 by the clock of the test, and 17:06 by now.
    api.site.clock.advance(10 * HOUR_MS)
    await emptied(api, "short")


async def test_a_configured_schedule_that_means_nothing_is_refused_at_the_start(
    api: Messages,
) -> None:
    with pytest.raises(ConfigError, match="--queue-ti-delete-reaper-schedule"):
        api.site.build(queue_ti_delete_reaper_schedule="often")


@pytest.mark.parametrize(
    "settings", [{"queue_ti_require_topic_registration": True}], ids=["registered only"]
)
async def test_a_topic_gets_messages_once_it_is_registered(api: Messages) -> None:
    """Overrides register a topic, in the original and here. Here settings of its queue do too."""
    new = {"topic": "t", "payload": "x"}
    reply = await api.post("/messages", new)
    assert reply.status == 422 and "not registered" in reply.error
    assert await api.configure("t") == {"topic": "t", "replayable": False}
    assert (await api.get("/topic-configs")).doc["items"] == [{"topic": "t", "replayable": False}]
    await api.enqueue("t")
    await api.fail("t", 3)
    assert len(await api.list("t.dlq")) == 1, "dead letters need no registration"
    assert (await api.send("DELETE", "/topic-configs/t")).status == 204
    assert (await api.post("/messages", new)).status == 422
    await api.native.call("PUT", "/queues/t/settings", {"lease_ms": 5_000})
    await api.enqueue("t")
    await api.native.enqueue(queue="native")


async def emptied(api: Messages, topic: str) -> None:
    """Return once the sweep that has begun is done: it runs beside requests."""
    async with asyncio.timeout(60):
        while (await api.get("/messages", topic=topic)).doc["total"]:
            await pause()
