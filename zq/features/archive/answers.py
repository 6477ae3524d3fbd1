"""The verbs that bring completed jobs back, and that say when expired jobs go."""

from zq.answers import Asked, VerbAnswers
from zq.features.archive.service import Replays
from zq.features.archive.service_running import Cleaning
from zq.features.schemas.verbs import (
    CleaningDocument,
    Replayed,
    ReplaySent,
    decode_replay,
    decode_schedule,
)
from zq.model.keys import KeyScope
from zq.model.names import check_name
from zq.verbs import FULL, Verb

READ, MANAGE = KeyScope.READ, KeyScope.MANAGE

_NOT_KEPT = {422: "The queue keeps no completed jobs, or none so old."}

REPLAY = Verb(
    "POST",
    "/queues/{queue}/replay",
    MANAGE,
    Replayed,
    ReplaySent,
    optional=True,
    refusals=_NOT_KEPT | FULL,
)
CLEANING = Verb("GET", "/cleaning", READ, CleaningDocument, whole=True)
CLEAN = Verb("PUT", "/cleaning", MANAGE, CleaningDocument, CleaningDocument, whole=True)


ANSWERS = VerbAnswers()


@ANSWERS.to(REPLAY)
async def replay(asked: Asked) -> Replayed:
    """Store copies of the completed jobs of a queue: 200 with how many.

    The settings of the queue have to keep completed jobs, and `since` must not be before what
    they keep. A copy has a new id and begins its attempts anew. A copy whose unique key is
    taken (`key_taken`), whose payload does not match the schema (`schema_mismatch`), or whose
    budget is gone (`budget_gone`) is left out, and `kept` counts it. 256 jobs come in a
    transaction: if the queue is full meanwhile, the replay ends with 429, and what it has
    stored stays.
    """
    queue = check_name("queue", asked.path["queue"])
    since = decode_replay(asked.body, asked.codec)
    stored = await asked.services[Replays].replay(queue, since, asked.reach)
    return Replayed(stored.changed, dict(stored.kept))


@ANSWERS.to(CLEANING)
async def schedule(asked: Asked) -> CleaningDocument:
    """The schedule by which expired jobs are deleted before their retention is over."""
    return CleaningDocument(asked.services[Cleaning].schedule)


@ANSWERS.to(CLEAN)
async def reschedule(asked: Asked) -> CleaningDocument:
    """Change that schedule. It is stored, and comes before the configured one.

    It has five fields of cron, or is a macro such as `@daily`, or an interval such as
    `@every 1h30m`. `CRON_TZ=Europe/Berlin` before it names a time zone. An empty schedule
    deletes nothing.
    """
    cleaning = asked.services[Cleaning]
    await cleaning.change(decode_schedule(asked.body, asked.codec))
    return CleaningDocument(cleaning.schedule)
