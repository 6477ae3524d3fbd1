"""What `zq health` says of a server without the operators' page: what its API tells."""

import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from zq.client.http.address import Address

Document = dict[str, Any]

ALARMS = ("no_worker", "failing")
SEVERITIES = {**dict.fromkeys(ALARMS, 3), "paused": 1}
WARNING = 2

LIMIT_IS_REACHED = 3


def overview_of(admin: "Address") -> tuple[Document, int, Document]:
    """The overview as the page has it, as far as the API tells it; the time; the server's state.

    Each queue has one finding, the worst one.
    """
    from zq.client.http.maintenance import figures_of

    stats, status = figures_of(admin)
    now = time.time_ns() // 1_000_000
    queues: list[Document] = stats["queues"]
    totals: dict[str, int] = {}
    for queue in queues:
        for name, n in queue["counts"].items():
            totals[name] = totals.get(name, 0) + n
    findings = [_limit(code) for code in status["limits_reached"]]
    findings += [_finding(queue) for queue in queues if queue.get("state")]
    findings.sort(key=lambda each: -int(each["severity"]))
    return (
        {
            "findings": findings,
            "tiles": _tiles(queues, totals, now),
            "pulse": {"totals": totals},
        },
        now,
        status,
    )


def _finding(queue: Document) -> Document:
    code = queue["state"]
    text = f"{code.replace('_', ' ')}: {queue['queue']} {queue['state_text']}"
    return {"severity": SEVERITIES.get(code, WARNING), "code": code, "text": text}


def _limit(code: str) -> Document:
    text = f"a limit of the server is reached: {code.replace('_', ' ')}"
    return {"severity": LIMIT_IS_REACHED, "code": code, "text": text}


def _tiles(queues: list[Document], totals: dict[str, int], now: int) -> Document:
    arrived, done, failed = (
        sum(queue[flow]["per_second_5m"] for queue in queues)
        for flow in ("deliveries", "completions", "failures")
    )
    tiles: Document = {
        "waiting": totals.get("ready", 0),
        "growth": 0,
        "delivered": arrived,
        "done": done,
        "busy": totals.get("in_flight", 0),
        "dead": totals.get("dead", 0),
    }
    if done + failed:
        tiles["failed"] = failed / (done + failed)
    ages = [(q["oldest_ready_age_ms"], q["queue"]) for q in queues if "oldest_ready_age_ms" in q]
    if ages:
        age, queue = max(ages)
        tiles["oldest"] = {"since": now - age, "queue": queue}
    return tiles
