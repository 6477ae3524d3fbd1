"""The verbs about users: their lives, their grants, and who has which password."""

import asyncio
import uuid
from functools import cached_property
from typing import TYPE_CHECKING, Self

from zq.doors.queue_ti.model import (
    Action,
    AddGrant,
    ChangeUser,
    CreateUser,
    DeleteGrant,
    DeleteUser,
    Grant,
    OwnUser,
    User,
    UserExists,
    UserNotFound,
    check_password,
    check_pattern,
    check_user_name,
)
from zq.doors.queue_ti.store import UserReads
from zq.engine.inbox import Inbox
from zq.model.clock import Clock
from zq.model.errors import InvalidRequest
from zq.service.services import Services
from zq.store.api import Store


class Users:
    """Users by their ids. The door decides by `Permit` of the model who may call which verb."""

    @classmethod
    def of(cls, services: Services) -> Self:
        return cls(services.store, services.clock, services.engine.inbox)

    def __init__(self, store: Store, clock: Clock, inbox: Inbox) -> None:
        self._reads = store.reads.of(UserReads)
        self._clock = clock
        self._inbox = inbox
        self._passwords = Passwords()

    async def every(self) -> list[User]:
        """Every user, in the order of their names."""
        return await self._reads.users()

    async def find(self, id: str) -> User | None:
        """A user with its grants, if it is there."""
        return await self._reads.user(id)

    async def get(self, id: str) -> User:
        """A user with its grants. Raises `UserNotFound`."""
        user = await self.find(id)
        if user is None:
            raise UserNotFound
        return user

    async def with_password(self, name: str, password: str) -> User | None:
        """The user of this name, if this is its password. A wrong name takes as long as a right
        one."""
        user = await self._reads.named(name)
        fits = await self._passwords.matches(None if user is None else user.hash, password)
        return user if fits else None

    async def create(self, name: str, password: str, *, is_admin: bool) -> User:
        """Store a user. Raises `InvalidRequest` or `UserExists`."""
        check_password(password)
        return await self._inbox.ask(CreateUser(await self._new(name, password, is_admin)))

    async def ensure_first(self, name: str, password: str) -> None:
        """Store an administrator if there is no user; its password may be short."""
        if not await self.every():
            try:
                user = await self._new(name, password, is_admin=True)
                await self._inbox.ask(CreateUser(user, first=True))
            except UserExists:
                pass

    async def change(
        self, id: str, name: str | None, password: str | None, is_admin: bool | None
    ) -> User:
        """Change what is not None.

        Raises `InvalidRequest`, `UserNotFound`, `UserExists` or `LastAdmin`.
        """
        if name is not None:
            check_user_name(name)
        hash = None
        if password is not None:
            hash = await self._passwords.hash(check_password(password))
        return await self._inbox.ask(ChangeUser(id, self._clock.now_ms(), name, hash, is_admin))

    async def delete(self, id: str, by: str) -> None:
        """Delete a user with its grants. Raises `OwnUser`, `LastAdmin` or `UserNotFound`."""
        if id == by:
            raise OwnUser
        await self._inbox.ask(DeleteUser(id))

    async def grant(self, id: str, action: Action, pattern: str, group: str | None = None) -> Grant:
        """Add a grant. Raises `InvalidRequest`, `UserNotFound` or `GrantExists`."""
        if (action is Action.CONSUME) != bool(group):
            raise InvalidRequest("a grant to consume names a consumer_group, and no other does")
        now = self._clock.now_ms()
        grant = Grant(str(uuid.uuid4()), action, check_pattern(pattern), now, group)
        return await self._inbox.ask(AddGrant(id, grant))

    async def revoke(self, id: str, grant: str) -> None:
        """Delete a grant. Raises `GrantNotFound`."""
        await self._inbox.ask(DeleteGrant(id, grant))

    async def _new(self, name: str, password: str, is_admin: bool) -> User:
        check_user_name(name)
        hash, now = await self._passwords.hash(password), self._clock.now_ms()
        return User(str(uuid.uuid4()), name, hash, is_admin, now, now)


if TYPE_CHECKING:
    from argon2 import PasswordHasher

MEMORY_KIB, PASSES, LANES = 19 * 1024, 2, 1
"""OWASP's recommendation for a server that does other things as well."""

AT_ONCE = 2
"""Each hash takes its memory, and a core for its time."""


class Passwords:
    """Hashes by argon2id. A thread does the work, for it takes some tens of milliseconds."""

    def __init__(self) -> None:
        self._turns = asyncio.Semaphore(AT_ONCE)

    async def hash(self, password: str) -> str:
        """The hash of a password, as it is stored."""
        async with self._turns:
            return await asyncio.to_thread(self._hasher.hash, password)

    async def matches(self, stored: str | None, password: str) -> bool:
        """True if a password is the stored one. It takes as long where None is stored."""
        async with self._turns:
            return await asyncio.to_thread(self._matches, stored, password)

    def _matches(self, stored: str | None, password: str) -> bool:
        from argon2.exceptions import InvalidHashError, VerificationError

        try:
            return self._hasher.verify(stored or self._nobody, password) and stored is not None
        except (VerificationError, InvalidHashError):
            return False

    @cached_property
    def _hasher(self) -> "PasswordHasher":
        from argon2 import PasswordHasher

        return PasswordHasher(PASSES, MEMORY_KIB, LANES)

    @cached_property
    def _nobody(self) -> str:
        return self._hasher.hash("")
