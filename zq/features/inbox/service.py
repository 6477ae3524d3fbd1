"""The state of the inbox, which is known without a look at the database."""

from typing import Self

from zq.features.inbox.store import RefusedRows
from zq.service.services import Services


class InboxState:
    """The rows that were refused when the inbox was last looked at."""

    @classmethod
    def of(cls, services: Services) -> Self:
        return cls()

    def __init__(self) -> None:
        self.refused = RefusedRows()
