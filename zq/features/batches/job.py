"""What batches add to a job: it has one form in bodies, rows and documents."""

import msgspec

from zq.features.batches.model import BatchRule


class BatchFields(msgspec.Struct, frozen=True, kw_only=True):
    """The batch that a job came with."""

    batch: BatchRule | None = None


BROUGHT = BatchFields
