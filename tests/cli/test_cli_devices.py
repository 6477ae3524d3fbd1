"""`zq devices`."""

import time

from zq.features.devices.client import DeviceReport, FetchBody, LaneReport, ServerDevices

from .shell import Shell


async def test_devices_are_listed_with_what_is_wrong_and_forgotten(shell: Shell) -> None:
    known = ServerDevices(shell.backend.ask)
    lanes = [LaneReport("main", jobs=7, bytes=70, oldest_ms=7_200_000)]
    ahead = round(time.time() * 1000) + 3_600_000
    await known.report("edge-1", DeviceReport("i1", "0.1.0", ahead, lanes=lanes))
    await known.report("edge-2", DeviceReport("i2", "0.1.0", round(time.time() * 1000)))

    (first,) = (await shell.zq("devices", "list", "--order", "lag", "--limit", "1")).table[1:]
    assert (first[0], first[2], first[3], first[-1]) == ("edge-1", "7", "2h", "behind, clock")
    listed = await shell.zq("devices", "list", "--json")
    assert [each["name"] for each in listed.documents] == ["edge-1", "edge-2"]
    assert [each.get("jobs") for each in listed.documents] == [7, 0]

    gone = await shell.zq("devices", "forget", "edge-1")
    assert (gone.code, gone.output) == (0, "the device edge-1 is forgotten\n")
    missing = await shell.zq("devices", "forget", "edge-1")
    assert missing.code == 1 and "'edge-1'" in missing.errors


async def test_a_job_is_sent_to_a_fleet_and_those_who_lack_it_are_listed(shell: Shell) -> None:
    known = ServerDevices(shell.backend.ask)
    for name in ("edge-1", "edge-2", "lab-1"):
        await known.report(name, DeviceReport(name, "0.1.0", 0))

    words = ("edge-*", "commands", '{"v": 9}', "--type", "update", "--group", "update-9")
    sent = await shell.zq("devices", "send", *words)
    assert (sent.code, sent.output) == (0, "update-9\n") and "2 devices" in sent.errors
    lacking = await shell.zq("devices", "lacking", "update-9")
    assert lacking.table[1:] == [["edge-1", "waiting"], ["edge-2", "waiting"]]

    found = await known.fetch("edge-1", FetchBody("edge-1"))
    await known.fetch("edge-1", FetchBody("edge-1", found.epoch, 1))
    as_json = await shell.zq("devices", "lacking", "update-9", "--json")
    assert as_json.documents == [{"waiting": 1, "devices": ["edge-2"], "missed": []}]

    nobody = await shell.zq("devices", "send", "car-*", "commands", "1")
    assert nobody.code == 1 and "GET /devices" in nobody.errors
    fleet = await shell.zq("push", "commands", "1", "--to", "edge-*")
    assert fleet.code == 1 and "zq devices send" in fleet.errors
