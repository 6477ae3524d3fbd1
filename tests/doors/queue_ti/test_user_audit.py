"""The audit names the users of queue-ti's door."""

from pathlib import Path
from typing import Any

import pytest
from conformance.client import JSON, Client, Wire
from conformance.site import Site

from .users import Caller, admin_of, auth_settings, basic


@pytest.fixture
def settings(tmp_path: Path) -> dict[str, Any]:
    return auth_settings(tmp_path)


@pytest.mark.parametrize("wire", [JSON], ids=str)
async def test_what_users_do_is_recorded_with_their_names(site: Site, wire: Wire) -> None:
    async with Client(site, wire) as client:
        admin = await admin_of(client)
        await admin.make("ann", is_admin=True)
        ann = await Caller(client).login("ann")
        topic = {"consumer_group": "a"}
        assert (await ann.send("POST", "/topics/t/consumer-groups", topic)).status == 201
        again = Caller(client, basic("admin", "secret"))
        await again.send("POST", "/topics/t/consumer-groups", {"consumer_group": "b"})
        refused = await Caller(client, "Bearer x").send("POST", "/topics/t/consumer-groups", topic)
        assert refused.status == 401
        await client.enqueue(queue="t", group="a")
        purge = await ann.send("POST", "/topics/t/purge", {"statuses": ["pending"]})
        assert purge.doc == {"deleted": 2}, "one for each group"
        (sweep,) = (await client.get("/sweeps/ended")).doc["sweeps"]
        assert (sweep["verb"], sweep["actor"]) == ("delete", "ann")
        found = (await client.get("/audit")).doc["actions"]
    assert [(each["actor"], each["path"]) for each in found] == [
        ("ann", "/api/topics/t/purge"),
        ("admin", "/api/topics/t/consumer-groups"),
        ("ann", "/api/topics/t/consumer-groups"),
        ("admin", "/api/users"),
    ]
    assert "password" not in str(found)
