"""What budgets add to the settings of a job."""

import msgspec

from zq.features.budgets.model import Draws


class DrawFields(msgspec.Struct, frozen=True, kw_only=True):
    """The stored draws of a job."""

    budgets: Draws | None = None


SETTINGS = DrawFields
