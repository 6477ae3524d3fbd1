"""What the verbs about completed and expired jobs do."""

from zq.answers import Asked, VerbAnswers
from zq.features.archive import verbs
from zq.features.archive.service import Replays
from zq.features.archive.service_running import Cleaning
from zq.features.schemas.verbs import CleaningDocument, Replayed, decode_replay, decode_schedule
from zq.model.names import check_name

ANSWERS = VerbAnswers()


@ANSWERS.to(verbs.REPLAY)
async def replay(asked: Asked) -> Replayed:
    """Store copies of the completed jobs of a queue: 200 with how many.

    The settings of the queue have to keep completed jobs, and `since` must not be before what
    they keep. A copy has a new id and begins its attempts anew. A copy whose unique key is
    taken is left out. 256 jobs come in a transaction: if the queue is full meanwhile, the
    replay ends with 429, and what it has stored stays.
    """
    queue = check_name("queue", asked.path["queue"])
    since = decode_replay(asked.body, asked.codec)
    return Replayed(await asked.services[Replays].replay(queue, since, asked.reach))


@ANSWERS.to(verbs.CLEANING)
async def schedule(asked: Asked) -> CleaningDocument:
    """The schedule by which expired jobs are deleted before their retention is over."""
    return CleaningDocument(asked.services[Cleaning].schedule)


@ANSWERS.to(verbs.CLEAN)
async def reschedule(asked: Asked) -> CleaningDocument:
    """Change that schedule. It is stored, and comes before the configured one.

    It has five fields of cron, or is a macro such as `@daily`, or an interval such as
    `@every 1h30m`. `CRON_TZ=Europe/Berlin` before it names a time zone. An empty schedule
    deletes nothing.
    """
    cleaning = asked.services[Cleaning]
    await cleaning.change(decode_schedule(asked.body, asked.codec))
    return CleaningDocument(cleaning.schedule)
