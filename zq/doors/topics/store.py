"""What may be read of topics, whichever the store is."""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
from msgspec import UNSET, Raw

from zq.doors.topics.model import (
    MAX_SEQ,
    MAX_TOPIC_ID,
    SEQ_BITS,
    PageWanted,
    TopicConfig,
    TopicPage,
    TopicRecord,
    TopicState,
    loss_of,
    tag_begins,
)
from zq.doors.topics.model_jobs import HeldRecord, JobsWanted, Labels
from zq.doors.topics.model_routers import RouterConfig, RoutersWanted, TopicRouter
from zq.model.checksums import ChecksumMismatch, fits, job_checksum, record_checksum
from zq.model.job import Extras, JobSettings
from zq.model.reach import EVERYWHERE, Reach
from zq.store.snapshot import Snapshot, SnapshotLanes, flat

MOST_EXAMINED = 20_000
"""Records that one page passes over at most, to find those that are wanted."""

_NUMBERS = {
    "seq_bits": str(SEQ_BITS),
    "max_seq": str(MAX_SEQ),
    "max_topic_id": str(MAX_TOPIC_ID),
}
_FIRST_SEQ = (
    "coalesce((SELECT key FROM topic_records"
    f" WHERE key > topics.id << {SEQ_BITS} AND key <= topics.id << {SEQ_BITS} | {MAX_SEQ}"
    f" ORDER BY key LIMIT 1) & {MAX_SEQ}, head_seq + 1)"
)
_COLUMNS = (
    "id, name, {config}, head_seq, count, bytes, cap_floor, ttl_floor, last_at, trim_at,"
    f" {_FIRST_SEQ}, dead_lettered"
)
"""The columns of a topic, in the order of the fields of `TopicState`."""

CONSTANTS = {
    "sqlite": {**_NUMBERS, "topic_row": f"json_array({_COLUMNS.format(config='json(config)')})"},
    "postgres": {
        **_NUMBERS,
        "topic_columns": _COLUMNS.format(config="config"),
        "topic_row": f"json_build_array({_COLUMNS.format(config='config')})::text",
    },
}
"""What words in the statements stand for."""

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


_state = msgspec.json.Decoder(TopicState)


def numbered_jobs(snapshot: Snapshot, topic: TopicState, wanted: JobsWanted) -> list[int]:
    """The keys of jobs that have numbers, perhaps only of those with some tags.

    There are none if the topic is gone, also if there is another one of its name.
    """
    text = snapshot.value("topic", name=topic.name)
    if text is None or not _state.decode(text).is_still(topic.id, topic.head_seq):
        return []
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


def get_topic(snapshot: Snapshot, name: str, now: int) -> TopicState | None:
    """A topic as it stands for readers: what is past its age is gone."""
    text = snapshot.value("topic", name=name)
    return None if text is None else _standing(snapshot, _state.decode(text), now)


def count_topics(snapshot: Snapshot) -> int:
    return int(snapshot.value("count_topics"))


def list_topics(
    snapshot: Snapshot, prefix: str, after: str, limit: int, reach: Reach, now: int
) -> list[TopicState]:
    """A page of topics by name, of those within reach."""
    found: list[TopicState] = []
    for bound in _within(prefix, reach):
        names = {"after": after, "limit": limit - len(found), **tag_begins(bound)._asdict()}
        texts = flat(snapshot.rows("topics_page", **names))
        found += [_standing(snapshot, _state.decode(text), now) for text in texts]
        if len(found) >= limit:
            break
    return found


def read_page(snapshot: Snapshot, name: str, wanted: PageWanted, now: int) -> TopicPage | None:
    """A page of a topic's records."""
    state = get_topic(snapshot, name, now)
    if state is None:
        return None
    if state.config.type == "queue":
        return read_jobs(snapshot, state, wanted)
    loss = loss_of(state, wanted.after)
    is_new = loss is not None and loss.reason == "recreated"
    after = max(0 if is_new else wanted.after, state.earliest_seq - 1)
    upto = state.head_seq
    if after >= upto:
        return TopicPage([], upto, upto, state.earliest_seq, loss)
    place: dict[str, Any] = {"id": state.id, "after": after, "upto": upto}
    others = "true"
    if wanted.nodes and state.config.dedupe_node:
        others = snapshot.text("others")
        place["nodes"] = list(wanted.nodes)
        examined = snapshot.value("examined", **place, most=MOST_EXAMINED)
        place["upto"] = upto if examined is None else examined
    words = {"OTHERS": others}
    place["upto"] = _end(snapshot, place, words, wanted)
    records = _read(snapshot, place, words)
    return TopicPage(records, place["upto"], upto, state.earliest_seq, loss)


def _end(
    snapshot: Snapshot, place: dict[str, Any], words: dict[str, str], wanted: PageWanted
) -> int:
    """The last number that the page has examined."""
    bounds = {**place, "limit": wanted.limit}
    ((count, size, last),) = snapshot.rows("extent", words, **bounds)
    if size > wanted.most_bytes:
        ((end,),) = snapshot.rows("fitting", words, **bounds, bytes=wanted.most_bytes)
        if end < last:
            return int(end)
    upto: int = last if count == wanted.limit else place["upto"]
    return upto


def _read(snapshot: Snapshot, place: dict[str, Any], words: dict[str, str]) -> list[TopicRecord]:
    """The records of a page, as they were stored."""
    records: list[TopicRecord] = []
    bad: list[int] = []
    for seq, at, node, tag, stored, data, meta in snapshot.rows("records", words, **place):
        try:
            _check(data, meta, stored)
            said = UNSET if meta is None else Raw(meta)
            records.append(TopicRecord(seq, at, node, tag, Raw(data), said))
        except (ChecksumMismatch, msgspec.MsgspecError):
            bad.append(place["id"] << SEQ_BITS | seq)
    if bad:
        raise snapshot.unreadable("topic_records", bad)
    return records


def _check(data: str | bytes, meta: str | bytes | None, stored: int | None) -> None:
    if stored is None:
        for text in (data, meta):
            if text is not None:
                msgspec.json.decode(text)
    elif record_checksum(data, meta) != stored:
        raise ChecksumMismatch


def _standing(snapshot: Snapshot, state: TopicState, now: int) -> TopicState:
    if state.config.type == "queue":
        return stand(snapshot, state)
    return _aged(snapshot, state, now)


def _aged(snapshot: Snapshot, state: TopicState, now: int) -> TopicState:
    """A topic without the records that are past their age and not yet removed."""
    ttl_ms = state.config.ttl_ms
    if not ttl_ms or state.earliest_seq > state.head_seq:
        return state
    first, last = first_younger(
        lambda seq: _first(snapshot.rows("record_from", id=state.id, seq=seq)),
        (state.earliest_seq, state.head_seq),
        now - ttl_ms,
    )
    if last is not None:
        state.ttl_floor = max(state.ttl_floor, last + 1)
        state.earliest_seq = first
    return state


def first_younger(
    record_from: Callable[[int], tuple[int, int] | None], extent: tuple[int, int], horizon: int
) -> tuple[int, int | None]:
    """The first record from after `horizon` on, one more than the last where there is none.

    And the last one of those before it that are there, None where there is none. Times never step
    back within a topic, so that a few looks find it, however many records there are.
    """
    low, last = extent
    lost: int | None = None
    high = last + 1
    while low < high:
        middle = (low + high) // 2
        found = record_from(middle)
        if found is None or found[1] > horizon:
            high = middle
        else:
            lost = found[0]
            low = found[0] + 1
    found = record_from(low)
    return (last + 1 if found is None else found[0]), lost


def _first(rows: Sequence[tuple[int, int]]) -> tuple[int, int] | None:
    return rows[0] if rows else None


def _within(prefix: str, reach: Reach) -> list[str]:
    """The prefixes of names that both ask for, in their order."""
    bounds = []
    for own in reach.prefixes:
        if own.startswith(prefix):
            bounds.append(own)
        elif prefix.startswith(own):
            bounds.append(prefix)
    return sorted(bounds)


_config = msgspec.json.Decoder(RouterConfig)


class TopicReads:
    """Each method sees one moment. What it shows of a topic that is synced is on the disk, except
    where it says otherwise.

    Records past their age are shown by none. They raise what the methods of `zq.store.reads.Reads`
    raise.
    """

    def __init__(self, lanes: SnapshotLanes) -> None:
        self._of = lanes.steady_of
        self._looks = lanes.looks
        self._hurried = lanes.deliveries
        self._scans = lanes.scans
        self._pages = lanes.pages
        self._awaited = lanes.followers

    async def topic(self, name: str, now: int, *, hurried: bool = False) -> TopicState | None:
        """A topic as it stands.

        A `hurried` look may show what is not on the disk yet. It is for workers, whose claims and
        settlements are checked and flushed anyway.
        """
        read = self._hurried if hurried else self._looks
        return await read(get_topic, name, self._of(now))

    async def topics(
        self, prefix: str, after: str, limit: int, reach: Reach, now: int
    ) -> list[TopicState]:
        """Up to `limit` topics behind the name `after`, in the order of their names."""
        page = (prefix, after, limit, reach, self._of(now))
        return await self._scans(list_topics, *page)

    async def count(self) -> int:
        return await self._looks(count_topics)

    async def page(
        self, name: str, wanted: PageWanted, now: int, *, awaited: bool = False
    ) -> TopicPage | None:
        """Records of a topic, None where there is no such topic.

        An `awaited` page is one that news of a tick has brought about. One append may bring about
        thousands of these, so they are never refused: they wait for each other.
        """
        read = self._awaited if awaited else self._pages
        return await read(read_page, name, wanted, self._of(now))

    async def held(self, topic: TopicState, node: str, seqs: Sequence[int]) -> list[HeldRecord]:
        """The records of a queue, among some, that a node holds. The read is a hurried one."""
        return await self._hurried(held_records, topic, node, seqs)

    async def labels(self, topic: TopicState, keys: Sequence[int]) -> dict[int, Labels]:
        """The numbers and labels of claimed jobs in a queue, of those that have numbers there."""
        return await self._hurried(labels_of, topic, keys)

    async def numbered(self, topic: TopicState, wanted: JobsWanted) -> list[int]:
        """The keys of unfinished jobs of a queue that have numbers."""
        return await self._scans(numbered_jobs, topic, wanted)

    async def router(self, name: str) -> TopicRouter | None:
        """A router as it stands."""
        return await self._looks(get_router, name)

    async def routers(self, wanted: RoutersWanted, reach: Reach) -> list[TopicRouter]:
        """Routers in the order of their names, those whose ends are both within reach."""
        return await self._scans(list_routers, wanted, reach)

    async def count_routers(self) -> int:
        return await self._looks(count_routers)


def get_router(snapshot: Snapshot, name: str) -> TopicRouter | None:
    found = snapshot.rows("router", name=name)
    return _router(*found[0]) if found else None


def count_routers(snapshot: Snapshot) -> int:
    return int(snapshot.value("count_routers"))


def list_routers(snapshot: Snapshot, wanted: RoutersWanted, reach: Reach) -> list[TopicRouter]:
    """A page of routers by name, of those within reach."""
    found: list[TopicRouter] = []
    after = wanted.after
    while len(found) < wanted.limit:
        names = {"after": after, "limit": wanted.limit, **tag_begins(wanted.prefix)._asdict()}
        ends = {"source": wanted.source, "dest": wanted.dest}
        some = [_router(*row) for row in snapshot.rows("routers_page", **names, **ends)]
        found += [router for router in some if _is_within(reach, router)]
        if len(some) < wanted.limit:
            break
        after = some[-1].name
    return found[: wanted.limit]


def _router(name: str, config: str, forwarded: int) -> TopicRouter:
    return TopicRouter(name, _config.decode(config), forwarded)


def _is_within(reach: Reach, router: TopicRouter) -> bool:
    config = router.config
    return reach is EVERYWHERE or (reach.covers(config.source) and reach.covers(config.dest))


READS = (TopicReads,)

FORMS = {"topics": {"config": TopicConfig}, "topic_routers": {"config": RouterConfig}}
"""The forms of what columns hold, by table."""
