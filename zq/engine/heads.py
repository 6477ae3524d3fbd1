"""Which queues have jobs of groups in flight.

Once such a job is settled, the next of its group can be claimed by the same tick. Streams that have
found nothing more in the queue have to hear of it before that tick, and not only after it.
"""

from collections.abc import Sequence

from zq.model.commands import Command, Fail, Succeed, TickResult


class Heads:
    """The queues of the jobs of groups that are in flight, by key."""

    def __init__(self) -> None:
        self._queues: dict[int, str] = {}

    def learn(self, result: TickResult) -> None:
        """Learn from a committed tick."""
        if self._queues:
            for _, key in result.ended:
                self._queues.pop(key, None)
        for jobs in result.claimed:
            self._queues.update([(job.key, job.queue) for job in jobs if job.group is not None])

    def settled(self, commands: Sequence[Command]) -> set[str]:
        """The queues in which the commands settle such jobs. It costs nothing where none is."""
        queues: set[str] = set()
        if self._queues:
            for command in commands:
                if isinstance(command, Succeed):
                    queues.update(self._queues[key] for key in self._queues.keys() & command.keys)
                elif isinstance(command, Fail) and command.key in self._queues:
                    queues.add(self._queues[command.key])
        return queues
