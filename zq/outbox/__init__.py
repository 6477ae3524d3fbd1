"""The outbox: jobs that are enqueued in the caller's own database transaction.

``outbox.enqueue(connection, task, …)`` writes a row into the table ``zq_outbox`` of the caller's
database. A relay moves the committed rows to the server: ``zq relay``, or a `Relay` in a program.
"""

from zq.outbox.relay import Relay
from zq.outbox.source import DatabaseUnavailable
from zq.outbox.table import ddl
from zq.outbox.writing import create_table, enqueue, enqueue_many

__all__ = ["DatabaseUnavailable", "Relay", "create_table", "ddl", "enqueue", "enqueue_many"]
