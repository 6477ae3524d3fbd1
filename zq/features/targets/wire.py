"""Documents about targets of queues."""

import msgspec


class AddedJobs(msgspec.Struct):
    """How many jobs a queue got."""

    added: int
