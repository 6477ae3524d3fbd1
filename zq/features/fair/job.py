"""What fair shares add to a job."""

import msgspec


class FairFields(msgspec.Struct, frozen=True, kw_only=True):
    """The key by which the queue of a job is shared, and the weight that it brings for its key."""

    fair_key: str | None = None
    fair_weight: float | None = None


FIELDS = FairFields
