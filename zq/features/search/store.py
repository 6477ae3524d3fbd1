"""What may be read of jobs by their texts, whichever the store is."""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from zq.model.filters import Filter
from zq.model.lifecycle import Status
from zq.model.reach import Reach
from zq.model.words import spellings
from zq.store.snapshot import Snapshot, SnapshotLanes, flat

LOOK_ROWS = 1_000
LOOK_BYTES = 4 * 1024 * 1024
"""The most bytes of one look. It examines at most `LOOK_ROWS` jobs, and ends with the job whose
payload passes this size."""

SAMPLE_ROWS = 1_000
SAMPLE_KEYS = 1_000
"""The most jobs of each kind in a sample, and the most keys of their payloads."""

CONSTANTS = {
    "sqlite": {
        "searched": (
            "lower(type || char(10) || iif(attempts = 0, '', ifnull((SELECT message FROM errors"
            " WHERE job_id = id ORDER BY attempt DESC LIMIT 1), '')) || char(10)"
            " || ifnull(payload, ifnull((SELECT body FROM payloads WHERE job_id = id), '')))"
        )
    },
    "postgres": {
        "searched": (
            "lower((type || chr(10) || CASE WHEN attempts = 0 THEN '' ELSE coalesce((SELECT message"
            " FROM errors WHERE job_id = id ORDER BY attempt DESC LIMIT 1), '') END || chr(10)"
            " || coalesce(payload, (SELECT body FROM payloads WHERE job_id = id), ''))"
            ' COLLATE "C")'
        )
    },
}
"""What words in the queries stand for. `searched` is the text of a job in which words are looked
for. With its collation, only ASCII letters become small in PostgreSQL."""


class WordsFound(NamedTuple):
    """The keys in it that match, in order, and the last key that was looked at, if there was one.

    It was the last look if it is about no job. `looked` counts jobs.
    """

    keys: list[int]
    reached: int | None
    looked: int


class SearchReads:
    """The reads of searches. They raise what the methods of `zq.store.reads.Reads` raise."""

    def __init__(self, lanes: SnapshotLanes) -> None:
        self._lanes = lanes

    async def find_words(
        self, filter: Filter, after: int, descending: bool, now: int
    ) -> WordsFound:
        """Look for the filter's words in the next jobs beyond `after` that match its plain part."""
        place = (after, descending, self._lanes.steady_of(now))
        return await self._lanes.scans(_find_words, self._lanes.dated(filter), *place)

    async def swept_words(self, filter: Filter, after: int) -> WordsFound:
        """Like `find_words`, for a sweep: jobs whose retention is over are included."""
        # At time 0, no job's retention is over.
        dated = self._lanes.dated(filter)
        return await self._lanes.sweeps(_find_words, dated, after, False, 0)

    async def places(self, keys: Sequence[int]) -> Counter[tuple[str, Status]]:
        """How many of some jobs are in each queue and status."""
        return await self._lanes.sweeps(_places, keys)

    async def types(self, queue: str | None, reach: Reach, now: int) -> list[str]:
        """The types of a sample of jobs: the latest, the dead, and what a queue delivers next."""
        return await self._sample("types", queue, reach, now)

    async def payload_keys(self, queue: str | None, reach: Reach, now: int) -> list[str]:
        """The keys of payloads that are small objects, of such a sample."""
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


READS = (SearchReads,)
