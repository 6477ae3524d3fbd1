"""Reading queue topics: their records are the unfinished jobs of the queue of the same name."""

from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import UNSET, Raw

from zq.doors.topics.model import PageWanted, TopicPage, TopicRecord, TopicState, loss_of
from zq.doors.topics.model_jobs import HeldRecord, JobsWanted, Labels
from zq.model.checksums import fits, job_checksum
from zq.model.job import Extras, JobSettings
from zq.store.snapshot import Snapshot, flat

MOST_EXAMINED = 20_000
"""Records that one page passes over at most, to find those that are wanted."""

_extras = msgspec.json.Decoder(Extras)
_options = msgspec.json.Decoder(JobSettings)


def stand(snapshot: Snapshot, state: TopicState) -> TopicState:
    """A queue with what its jobs say of it. `state` is changed."""
    ((state.count, state.ready, state.in_flight),) = snapshot.rows("standing", queue=state.name)
    place = {"queue": state.name, "id": state.id, "after": 0, "upto": state.head_seq}
    first = snapshot.value("first_job", **place, most=MOST_EXAMINED)
    state.earliest_seq = _examined(snapshot, place) + 1 if first is None else first
    return state


def read_jobs(snapshot: Snapshot, state: TopicState, wanted: PageWanted) -> TopicPage:
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
    bounds: dict[str, Any] = {
        "limit": wanted.limit,
        "most": MOST_EXAMINED,
        "bytes": wanted.most_bytes,
    }
    others = "true"
    if wanted.nodes and state.config.dedupe_node:
        others = snapshot.text("jobs_others")
        bounds["nodes"] = list(wanted.nodes)
    records: list[TopicRecord] = []
    size = 0
    with snapshot.each("jobs_page", {"OTHERS": others}, **parameters, **bounds) as rows:
        for seq, at, node, tag, *carried in rows:
            data, meta = _carried(snapshot, *carried)
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
                next_seq = _examined(snapshot, parameters)
    loss = loss_of(state, wanted.after, records[0].seq if records else next_seq + 1)
    return TopicPage(records, next_seq, upto, state.earliest_seq, loss)


def _carried(
    snapshot: Snapshot,
    key: int,
    type: str,
    extras_text: str | None,
    options_text: str | None,
    stored: int | None,
    inline: str | None,
    beside: str | None,
    stored_beside: int | None,
) -> tuple[str, str | None]:
    """The payload and the meta of a job, as they were stored. Raises `Snapshot.unreadable`."""
    try:
        extras = None if extras_text is None else _extras.decode(extras_text)
        options = None if options_text is None else _options.decode(options_text)
    except msgspec.MsgspecError:
        raise snapshot.unreadable("jobs", [key]) from None
    data = inline or beside
    is_sound = stored in (None, job_checksum(type, inline, extras, options))
    if data is None or not is_sound or not fits(data, None if inline else stored_beside):
        raise snapshot.unreadable("jobs", [key])
    return data, None if extras is None else extras.meta


def _examined(snapshot: Snapshot, place: dict[str, Any]) -> int:
    """The last number of those that one look at a queue examines."""
    last = snapshot.value("jobs_examined", **place, most=MOST_EXAMINED)
    return int(place["upto"] if last is None else last)


def held_records(
    snapshot: Snapshot, topic: TopicState, node: str, seqs: Sequence[int]
) -> list[HeldRecord]:
    """The records, among some, that a node holds."""
    wanted = {"id": topic.id, "queue": topic.name, "node": node, "seqs": list(seqs)}
    return [HeldRecord(*row) for row in snapshot.rows("held", **wanted)]


def labels_of(snapshot: Snapshot, topic: TopicState, keys: Sequence[int]) -> dict[int, Labels]:
    """The numbers and labels of some jobs, of those that have numbers there."""
    rows = snapshot.rows("labels", id=topic.id, keys=list(keys))
    return {key: Labels(seq, node, tag) for key, seq, node, tag in rows}


def numbered_jobs(snapshot: Snapshot, topic: TopicState, wanted: JobsWanted) -> list[int]:
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
    return flat(snapshot.rows(name, **parameters))
