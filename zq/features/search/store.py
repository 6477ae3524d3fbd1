"""What may be read of jobs by their texts, whichever the store is."""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple, Protocol

from zq.model.filters import Filter
from zq.model.lifecycle import Status
from zq.model.reach import Reach

LOOK_ROWS = 1_000
LOOK_BYTES = 4 * 1024 * 1024
"""The most bytes of one look. It examines at most `LOOK_ROWS` jobs, and ends with the job whose
payload passes this size."""

SAMPLE_ROWS = 1_000
SAMPLE_KEYS = 1_000
"""The most jobs of each kind in a sample, and the most keys of their payloads."""


class WordsFound(NamedTuple):
    """The keys in it that match, in order, and the last key that was looked at, if there was one.

    It was the last look if it is about no job. `looked` counts jobs.
    """

    keys: list[int]
    reached: int | None
    looked: int


class SearchReads(Protocol):
    """It raises what the methods of `zq.store.api.Reads` raise."""

    async def find_words(
        self, filter: Filter, after: int, descending: bool, now: int
    ) -> WordsFound:
        """Look for the filter's words in the next jobs beyond `after` that match its plain part."""

    async def swept_words(self, filter: Filter, after: int) -> WordsFound:
        """Such a look for a sweep: jobs whose retention is over are included."""

    async def places(self, keys: Sequence[int]) -> Counter[tuple[str, Status]]:
        """How many of some jobs are in each queue and status."""

    async def types(self, queue: str | None, reach: Reach, now: int) -> list[str]:
        """The types of a sample of jobs: the latest, the dead, and what a queue delivers next."""

    async def payload_keys(self, queue: str | None, reach: Reach, now: int) -> list[str]:
        """The keys of payloads that are small objects, of such a sample."""
