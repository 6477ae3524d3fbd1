"""Reading queue topics: their records are the unfinished jobs of the queue of the same name."""

import sqlite3
from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import UNSET, Raw

from zq.doors.topics.model import TopicPage, TopicRecord, TopicState, loss_of
from zq.doors.topics.model_jobs import HeldRecord, JobsWanted, Labels
from zq.doors.topics.store import MOST_EXAMINED, PageWanted
from zq.model.checksums import fits, job_checksum
from zq.model.job import Extras, JobSettings
from zq.store.api import as_json
from zq.store.sqlite.quarantine import UnreadableRows
from zq.store.sqlite.queries import load

QUERIES = load(__name__)

_extras = msgspec.json.Decoder(Extras)
_options = msgspec.json.Decoder(JobSettings)


def stand(connection: sqlite3.Connection, state: TopicState) -> TopicState:
    """A queue with what its jobs say of it. `state` is changed."""
    row = connection.execute(QUERIES["standing"], {"queue": state.name}).fetchone()
    state.count, state.ready, state.in_flight = row
    place = {"queue": state.name, "id": state.id, "after": 0, "upto": state.head_seq}
    first = connection.execute(QUERIES["first_job"], {**place, "most": MOST_EXAMINED}).fetchone()
    state.earliest_seq = _examined(connection, place) + 1 if first is None else first[0]
    return state


def read_jobs(connection: sqlite3.Connection, state: TopicState, wanted: PageWanted) -> TopicPage:
    """A page of a queue's records, whether somebody holds them or not."""
    upto = state.head_seq
    # A cursor beyond the head is of another topic that had this name.
    after = wanted.after if wanted.after <= upto else 0
    parameters: dict[str, Any] = {
        "queue": state.name,
        "id": state.id,
        "after": after,
        "upto": upto,
    }
    bounds: dict[str, Any] = {"limit": wanted.limit, "most": MOST_EXAMINED}
    others = "1"
    if wanted.nodes and state.config.dedupe_node:
        others = QUERIES["others"]
        bounds["nodes"] = as_json(list(wanted.nodes))
    records: list[TopicRecord] = []
    size = 0
    query = QUERIES["jobs_page"].replace("OTHERS", others)
    for row in connection.execute(query, parameters | bounds):
        seq, at, node, tag, *carried = row
        data, meta = _carried(*carried)
        size += len(data)
        if records and size > wanted.most_bytes:
            next_seq = records[-1].seq
            break
        said = UNSET if meta is None else Raw(meta.encode())
        records.append(TopicRecord(seq, at, node, tag, Raw(data.encode()), said))
    else:
        if len(records) == wanted.limit:
            next_seq = records[-1].seq
        else:
            next_seq = _examined(connection, parameters)
    loss = loss_of(state, wanted.after, records[0].seq if records else next_seq + 1)
    return TopicPage(records, next_seq, upto, state.earliest_seq, loss)


def _carried(
    key: int,
    type: str,
    extras_text: str | None,
    options_text: str | None,
    stored: int | None,
    inline: str | None,
    beside: str | None,
    stored_beside: int | None,
) -> tuple[str, str | None]:
    """The payload and the meta of a job, as they were stored. Raises `UnreadableRows`."""
    try:
        extras = None if extras_text is None else _extras.decode(extras_text)
        options = None if options_text is None else _options.decode(options_text)
    except msgspec.MsgspecError:
        raise UnreadableRows("jobs", [key]) from None
    data = inline or beside
    is_sound = stored in (None, job_checksum(type, inline, extras, options))
    if data is None or not is_sound or not fits(data, None if inline else stored_beside):
        raise UnreadableRows("jobs", [key])
    return data, None if extras is None else extras.meta


def _examined(connection: sqlite3.Connection, place: dict[str, Any]) -> int:
    """The last number of those that one look at a queue examines."""
    row = connection.execute(QUERIES["examined"], {**place, "most": MOST_EXAMINED}).fetchone()
    upto: int = place["upto"] if row is None else row[0]
    return upto


def held_records(
    connection: sqlite3.Connection, topic: TopicState, node: str, seqs: Sequence[int]
) -> list[HeldRecord]:
    """The records, among some, that a node holds."""
    parameters = {"id": topic.id, "queue": topic.name, "node": node, "seqs": as_json(list(seqs))}
    return [HeldRecord(*row) for row in connection.execute(QUERIES["held"], parameters)]


def labels_of(
    connection: sqlite3.Connection, topic: TopicState, keys: Sequence[int]
) -> dict[int, Labels]:
    """The numbers and labels of some jobs, of those that have numbers there."""
    rows = connection.execute(QUERIES["labels"], {"id": topic.id, "keys": as_json(list(keys))})
    return {key: Labels(seq, node, tag) for key, seq, node, tag in rows}


def numbered_jobs(
    connection: sqlite3.Connection, topic: TopicState, wanted: JobsWanted
) -> list[int]:
    """The keys of jobs that have numbers, perhaps only of those with some tags."""
    parameters: dict[str, Any] = {
        "id": topic.id,
        "queue": topic.name,
        "upto": wanted.upto,
        "limit": wanted.limit,
    }
    name = "numbered"
    if wanted.match is not None:
        name = "tagged"
        parameters |= wanted.match._asdict()
    return [key for (key,) in connection.execute(QUERIES[name], parameters)]
