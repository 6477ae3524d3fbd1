"""Large bodies of many small values, within the limits on bytes."""

from __future__ import annotations

import struct

from bench.attacks.site import Attack, Outcome, Site

MSGPACK = "application/msgpack"


def nothings(site: Site, count: int) -> Outcome:
    """A job with an unknown field: an array of nils, of one byte each."""
    job = b"\x84\xa5queue\xa1b\xa4type\xa1t\xa7payload\xc0\xa1x"
    return sent(site, "/jobs", job + b"\xdd" + struct.pack(">I", count) + b"\xc0" * count, MSGPACK)


def sent(site: Site, path: str, body: bytes, kind: str = "application/json") -> Outcome:
    """Post one body. The outcome is the status, and the code of the error."""
    reply = site.request("POST", path, body, kind)
    return Outcome(f"{reply.status or reply.text}", len(body))


ATTACKS = (Attack("60 MB of MessagePack nil", nothings, 60_000_000, 60_000),)
