"""What may be read of users, whichever the store is."""

from typing import Protocol

from zq.doors.queue_ti.model import User


class UserReads(Protocol):
    """Each method sees one moment, and nothing that is not on the disk."""

    async def user(self, id: str) -> User | None:
        """A user with its grants."""

    async def named(self, name: str) -> User | None:
        """The user of this name, with its grants."""

    async def users(self) -> list[User]:
        """Every user with its grants, in the order of their names."""
