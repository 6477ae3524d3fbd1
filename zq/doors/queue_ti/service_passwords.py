"""Passwords and their hashes. The library is an extra, and is imported when it is first used."""

import asyncio
from functools import cached_property
from typing import TYPE_CHECKING

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
