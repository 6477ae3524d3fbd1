"""The queries of searches, as functions of a reader's connection."""

import sqlite3
from collections import Counter
from collections.abc import Sequence

import msgspec

from zq.features.search.store import LOOK_BYTES, LOOK_ROWS, SAMPLE_KEYS, SAMPLE_ROWS, WordsFound
from zq.model.filters import Filter
from zq.model.lifecycle import Status
from zq.model.reach import Reach
from zq.model.words import spellings
from zq.store.api import as_json
from zq.store.sqlite.lookups import last_errors, list_jobs
from zq.store.sqlite.quarantine import is_unreadable
from zq.store.sqlite.queries import load
from zq.store.sqlite.where import where

QUERIES = load(__name__)

_looked = msgspec.json.Decoder(list[tuple[int, int]])
_places = msgspec.json.Decoder(list[tuple[str, Status, int]])
_names = msgspec.json.Decoder(list[str])


def find_words(
    connection: sqlite3.Connection, filter: Filter, after: int, descending: bool, now: int
) -> WordsFound:
    """Look for words in the next jobs. At time 0, no job's retention is over."""
    conditions, parameters = where(filter.plain, hide_purged_at=now)
    words, needles = _words(filter.words)
    sql = QUERIES["descending" if descending else "ascending"]
    sql = sql.replace("CONDITIONS", conditions).replace("WORDS", words)
    parameters |= {"after": after, "rows": LOOK_ROWS, "bytes": LOOK_BYTES, **needles}
    try:
        found = _looked.decode(_text(connection, sql, parameters))
    except Exception as error:
        if not is_unreadable(error):
            raise
        # These say which rows cannot be read.
        jobs = list_jobs(connection, filter.plain, after, descending, LOOK_ROWS, now)
        last_errors(connection, [job.key for job in jobs])
        raise
    keys = [key for key, matches in found if matches]
    return WordsFound(keys, found[-1][0] if found else None, len(found))


def places(connection: sqlite3.Connection, keys: Sequence[int]) -> Counter[tuple[str, Status]]:
    """How many of some jobs are in each queue and status."""
    text = _text(connection, QUERIES["places"], {"keys": as_json(keys)})
    return Counter({(queue, status): n for queue, status, n in _places.decode(text)})


def sample(
    connection: sqlite3.Connection, name: str, queue: str | None, reach: Reach, now: int
) -> list[str]:
    """The `types` or the `payload_keys` of some jobs."""
    queues = () if queue is None else (queue,)
    conditions, parameters = where(Filter(queues=queues, reach=reach), hide_purged_at=now)
    sql = QUERIES[name].replace("CONDITIONS", conditions)
    parameters |= {"queue": queue, "limit": SAMPLE_ROWS, "most": SAMPLE_KEYS}
    return _names.decode(_text(connection, sql, parameters))


def _words(words: Sequence[str]) -> tuple[str, dict[str, object]]:
    """The condition that all words occur, and its parameters."""
    needles: dict[str, object] = {}
    conditions = []
    for number, word in enumerate(words):
        forms = {f"word_{number}_{form}": text for form, text in enumerate(spellings(word))}
        conditions.append(f"({' OR '.join(f'instr(text, :{name}) > 0' for name in forms)})")
        needles |= forms
    return " AND ".join(conditions) or "true", needles


def _text(connection: sqlite3.Connection, sql: str, parameters: dict[str, object]) -> str:
    text: str = connection.execute(sql, parameters).fetchone()[0]
    return text
