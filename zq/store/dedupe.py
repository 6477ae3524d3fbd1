"""Names by which copies of a job are recognised, for a while and whatever becomes of the job.

A name belongs to its queue and group, or to the queue alone for jobs of no group.
"""

from collections.abc import Sequence

from zq.model.commands import Enqueue
from zq.model.job import MAX_TIME, Job, NewJob
from zq.model.reach import Reach
from zq.store.pick import first_visible
from zq.store.work import QUERIES, Work, as_json

Name = tuple[str, str, str]
"""Queue, group ('' where there is none), name."""


class NameTable:
    """The names that this tick's new jobs bring: which of them are known, and those that come."""

    def __init__(self, work: Work, commands: Sequence[Enqueue]) -> None:
        brought = {
            name_of(job) for command in commands for job in command.jobs if job.dedupe is not None
        }
        self._work = work
        self._keys: dict[Name, int] = {}
        self._jobs: dict[int, Job] = {}
        self._new: list[tuple[object, ...]] = []
        if brought:
            self._read(brought)

    def find(self, new: NewJob, reach: Reach) -> Job | int | None:
        """The job of which a new one is a copy; only its key where it is not there for who asks."""
        key = None if new.dedupe is None else self._keys.get(name_of(new))
        if key is None:
            return None
        job = self._jobs.get(key)
        return key if job is None else first_visible(self._work, [job], reach) or key

    def learn(self, new: NewJob, accepted: Job) -> None:
        """Let copies of a new job be recognised, from now on, as the one that was accepted."""
        if new.dedupe is None:
            return
        name = name_of(new)
        until = min(self._work.now + new.dedupe.window_ms, MAX_TIME)
        self._keys[name] = accepted.key
        self._jobs[accepted.key] = accepted
        self._new.append((*name, accepted.key, until))

    def write(self) -> None:
        """Store what was learnt."""
        if self._new:
            self._work.run("write_names", names=as_json(self._new))
            self._work.moves_deadlines = True

    def _read(self, names: set[Name]) -> None:
        known = self._work.known_names(as_json(list(names)))
        self._keys = {(queue, group, name): key for queue, group, name, key in known}
        if known:
            found = self._work.jobs(QUERIES["read_jobs"], keys=as_json([*self._keys.values()]))
            self._jobs = {job.key: job for job in found}


def name_of(job: NewJob) -> Name:
    """The name of a job that has one."""
    assert job.dedupe is not None
    return job.queue, job.group or "", job.dedupe.id
