"""Large bodies of many small values, within the limits on bytes, at every door."""

from __future__ import annotations

import json
import struct

from bench.attacks.site import Attack, Outcome, Site

MSGPACK = "application/msgpack"
FORM = "application/x-www-form-urlencoded"


def nothings(site: Site, count: int) -> Outcome:
    """A job with an unknown field: an array of nils, of one byte each."""
    job = b"\x84\xa5queue\xa1b\xa4type\xa1t\xa7payload\xc0\xa1x"
    return sent(site, "/jobs", job + b"\xdd" + struct.pack(">I", count) + b"\xc0" * count, MSGPACK)


def empty_maps(site: Site, count: int) -> Outcome:
    """An array of empty maps: each takes 64 bytes of memory for one that is sent."""
    return sent(site, "/jobs", b"\xdd" + struct.pack(">I", count) + b"\x80" * count, MSGPACK)


def long_integer(site: Site, count: int) -> Outcome:
    """A job with an unknown field: ones, and an integer that is out of range."""
    ones = b"1," * count
    body = b'{"queue":"b","type":"t","x":[' + ones + b"1234567890123456789012345]}"
    return sent(site, "/jobs", body)


def payload_with_long_integer(site: Site, count: int) -> Outcome:
    """A payload of ones, and an integer of 20 digits that is in range."""
    body = b'{"queue":"b","type":"t","payload":[' + b"1," * count + b"12345678901234567890]}"
    return sent(site, "/jobs", body)


def wrong_float(site: Site, count: int) -> Outcome:
    """A job whose priority is not an integer, and an unknown field of objects with floats."""
    body = b'{"queue":"b","type":"t","payload":1,"priority":1.5,"x":['
    return sent(site, "/jobs", body + b'{"a":1.0},' * count + b"1]}")


def deep_float(site: Site, count: int) -> Outcome:
    """A job with an integral float, and an unknown field with a long text in 600 arrays."""
    deep = b"[" * 600 + b'"' + b"x" * count + b'"' + b"]" * 600
    body = b'{"queue":"b","type":"t","payload":1,"priority":1.0,"x":'
    return sent(site, "/jobs", body + deep + b"}")


def many_names(site: Site, count: int) -> Outcome:
    """A bulk of 3 payloads, each an object of many fields."""
    payload = {f"k{n}": n for n in range(count)}
    jobs = [{"queue": "b", "type": "t", "payload": payload}] * 3
    return sent(site, "/jobs/bulk", json.dumps({"jobs": jobs}).encode())


def large_bulk(site: Site, count: int) -> Outcome:
    """A bulk of jobs with a text of 5,000 bytes. 3,300 of them make the largest valid one."""
    jobs = [{"queue": "b", "type": "t", "payload": "x" * 5_000}] * count
    return sent(site, "/jobs/bulk", json.dumps({"jobs": jobs}).encode())


def deep_payload(site: Site, count: int) -> Outcome:
    """A payload of many towers of brackets, each as deep as it may be."""
    tower = b"[" * 120 + b"]" * 120
    body = b'{"queue":"b","type":"t","payload":[' + b",".join([tower] * count) + b"]}"
    return sent(site, "/jobs", body)


def form_of_messages(site: Site, count: int) -> Outcome:
    """A form for queue-ti's door with a field again and again."""
    return sent(site, "/api/messages", b"a=1&" * count, FORM)


def pushed_form(site: Site, count: int) -> Outcome:
    """A form as the payload of a job."""
    return sent(site, "/queues/b/push", b"a=1&" * count, FORM)


def message(site: Site, count: int) -> Outcome:
    """A message for queue-ti's door with an unknown field of ones."""
    body = b'{"topic":"b","payload":"","x":[' + b"1," * count + b"1]}"
    return sent(site, "/api/messages", body)


def records(site: Site, count: int) -> Outcome:
    """A record for a topic whose data is an array of ones."""
    site.need("PUT", "/v0/topics/b", b'{"type": "log"}')
    body = b'{"records":[{"data":[' + b"1," * count + b"1]}]}"
    return sent(site, "/v0/topics/b", body)


def acknowledgements(site: Site, count: int) -> Outcome:
    """An acknowledgement whose unknown field is an array of ones."""
    return sent(site, "/jobs/success", b'{"ids":["x"],"x":[' + b"1," * count + b"1]}")


def sent(site: Site, path: str, body: bytes, kind: str = "application/json") -> Outcome:
    """Post one body. The outcome is the status, or the error that ended the connection."""
    reply = site.request("POST", path, body, kind)
    return Outcome(f"{reply.status or reply.text}", len(body))


ATTACKS = (
    Attack("60 MB of MessagePack nil", nothings, 60_000_000, 300_000),
    Attack("15 MB of empty MessagePack maps", empty_maps, 15_000_000, 300_000),
    Attack("60 MB of JSON with a long integer", long_integer, 30_000_000, 150_000),
    Attack(
        "8 MB payload with an integer of 20 digits", payload_with_long_integer, 950_000, 150_000
    ),
    Attack("300,000 objects of floats beside a wrong one", wrong_float, 300_000, 30_000),
    Attack("4 MB below 600 brackets beside a float", deep_float, 4_000_000, 300_000),
    Attack("3 payloads of 300,000 names", many_names, 300_000, 10_000),
    Attack("bulk of 10,000 jobs in 50 MB", large_bulk, 10_000, 4_000),
    Attack("bulk of 3,300 jobs in 16 MB", large_bulk, 3_300, 1_000),
    Attack("payload of 8,000 towers of brackets", deep_payload, 8_000, 1_200),
    Attack("30 MB form at /api", form_of_messages, 7_500_000, 75_000),
    Attack("30 MB form that is pushed", pushed_form, 7_500_000, 75_000),
    Attack("60 MB message at /api", message, 30_000_000, 150_000),
    Attack("60 MB record at /v0", records, 30_000_000, 150_000),
    Attack("60 MB acknowledgement", acknowledgements, 30_000_000, 150_000),
)
