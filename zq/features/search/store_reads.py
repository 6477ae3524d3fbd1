"""The reads of searches."""

from collections import Counter
from collections.abc import Sequence

from zq.features.search.store import (
    LOOK_BYTES,
    LOOK_ROWS,
    SAMPLE_KEYS,
    SAMPLE_ROWS,
    SearchReads,
    WordsFound,
)
from zq.model.filters import Filter
from zq.model.lifecycle import Status
from zq.model.reach import Reach
from zq.model.words import spellings
from zq.store.snapshot import Snapshot, SnapshotLanes, flat


class StoredSearchReads(SearchReads):
    """The reads of searches by the lanes of a store."""

    def __init__(self, lanes: SnapshotLanes) -> None:
        self._lanes = lanes

    async def find_words(
        self, filter: Filter, after: int, descending: bool, now: int
    ) -> WordsFound:
        place = (after, descending, self._lanes.steady_of(now))
        return await self._lanes.scans(_find_words, self._lanes.dated(filter), *place)

    async def swept_words(self, filter: Filter, after: int) -> WordsFound:
        # At time 0, no job's retention is over.
        dated = self._lanes.dated(filter)
        return await self._lanes.sweeps(_find_words, dated, after, False, 0)

    async def places(self, keys: Sequence[int]) -> Counter[tuple[str, Status]]:
        return await self._lanes.sweeps(_places, keys)

    async def types(self, queue: str | None, reach: Reach, now: int) -> list[str]:
        return await self._sample("types", queue, reach, now)

    async def payload_keys(self, queue: str | None, reach: Reach, now: int) -> list[str]:
        return await self._sample("payload_keys", queue, reach, now)

    async def _sample(self, kind: str, queue: str | None, reach: Reach, now: int) -> list[str]:
        sight = (queue, reach, self._lanes.steady_of(now))
        return await self._lanes.scans(_some, kind, *sight)


def _find_words(
    snapshot: Snapshot, filter: Filter, after: int, descending: bool, now: int
) -> WordsFound:
    """Look for words in the next jobs. At time 0, no job's retention is over."""
    conditions, parameters = snapshot.where(filter.plain, hide_purged_at=now)
    condition, needles = _words(snapshot, filter.words)
    parameters |= {"after": after, "rows": LOOK_ROWS, "bytes": LOOK_BYTES, **needles}
    words = {"CONDITIONS": conditions, "WORDS": condition}
    try:
        found = snapshot.rows("descending" if descending else "ascending", words, **parameters)
    except Exception as error:
        snapshot.blame(error, filter.plain, after, descending, LOOK_ROWS, now)
        raise
    keys = [key for key, matches in found if matches]
    return WordsFound(keys, found[-1][0] if found else None, len(found))


def _places(snapshot: Snapshot, keys: Sequence[int]) -> Counter[tuple[str, Status]]:
    """How many of some jobs are in each queue and status."""
    found = snapshot.rows("places", keys=list(keys))
    return Counter({(queue, Status(status)): n for queue, status, n in found})


def _some(snapshot: Snapshot, query: str, queue: str | None, reach: Reach, now: int) -> list[str]:
    """The `types` or the `payload_keys` of some jobs."""
    queues = () if queue is None else (queue,)
    conditions, parameters = snapshot.where(Filter(queues=queues, reach=reach), hide_purged_at=now)
    parameters |= {"queue": queue, "limit": SAMPLE_ROWS, "most": SAMPLE_KEYS}
    return flat(snapshot.rows(query, {"CONDITIONS": conditions}, **parameters))


def _words(snapshot: Snapshot, words: Sequence[str]) -> tuple[str, dict[str, object]]:
    """The condition that all words occur, and its parameters."""
    needles: dict[str, object] = {}
    conditions = []
    contains = snapshot.text("contains")
    for number, word in enumerate(words):
        forms = {f"word_{number}_{form}": text for form, text in enumerate(spellings(word))}
        among = " OR ".join(contains.replace("NEEDLE", f":{name}") for name in forms)
        conditions.append(f"({among})")
        needles |= forms
    return " AND ".join(conditions) or "true", needles


READS = {SearchReads: StoredSearchReads}
