"""The clients of all doors, for tests of what the doors have in common."""

from doors.queue_ti.conftest import api
from doors.topics.conftest import queue

__all__ = ["api", "queue"]
