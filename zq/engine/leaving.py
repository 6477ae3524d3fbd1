"""The queues whose jobs leave for other servers, for whoever asks outside of a transaction."""

from zq.model.queue_patterns import NO_QUEUES, QueuePatterns


class LeavingQueues:
    """The queues from which no worker takes here, as of the last commit.

    A room that has such queues sets the `patterns`, from its start on.
    """

    def __init__(self) -> None:
        self.patterns: QueuePatterns = NO_QUEUES

    def covers(self, queue: str) -> bool:
        """True if the jobs of a queue leave."""
        return self.patterns.covers(queue)
