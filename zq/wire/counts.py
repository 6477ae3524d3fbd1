"""Documents of how many jobs, or other things, a verb has changed."""

import msgspec


class Deleted(msgspec.Struct):
    """How many jobs were deleted."""

    deleted: int
