"""The errors of the inbox."""

from zq.model.errors import Conflict


class RowsChanged(Conflict):
    """Somebody has deleted or changed rows since they were read."""

    code = "rows_changed"

    def __init__(self) -> None:
        super().__init__("rows of the inbox were changed since they were read: read them again")
