"""Waits for changes of files: inotify on Linux, short sleeps elsewhere."""

import ctypes
import math
import os
import select
import sys
from collections.abc import Sequence
from pathlib import Path

SLEEP_S = 0.05
"""How long a wait takes at most where the kernel does not tell of changes."""

# From linux/inotify.h
_MODIFY, _ATTRIB, _MOVE_SELF, _DELETE_SELF = 0x002, 0x004, 0x800, 0x400
# A file that is removed while somebody has it open loses a name, which is an attribute.
_MASK = _MODIFY | _ATTRIB | _MOVE_SELF | _DELETE_SELF
_READ_BYTES = 64 * 1024


class FileChanges:
    """The changes of some files. `wait` is for one thread, and `end` for any."""

    def __init__(self) -> None:
        """Raises OSError if no descriptor is left."""
        self._ended, self._end = os.pipe()
        self._poll = select.poll()
        self._poll.register(self._ended, select.POLLIN)
        self._libc = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None
        self._inotify = self._open()

    def watch(self, files: Sequence[Path]) -> None:
        """Watch those of these files that exist. It may be repeated at little cost."""
        if self._inotify is None or self._libc is None:
            return
        for file in files:
            added = self._libc.inotify_add_watch(self._inotify, os.fsencode(file), _MASK)
            if added < 0 and file.exists():
                # The user's watches are used up, for example.
                self._forget()
                return

    def wait(self, seconds: float) -> bool:
        """Wait for a change since the last wait, for the end, or for this long.

        Return True if a file was changed, as far as the kernel tells.
        """
        if self._inotify is None:
            seconds = min(seconds, SLEEP_S)
        changed = False
        for descriptor, _ in self._poll.poll(math.ceil(seconds * 1000)):
            if descriptor == self._inotify:
                os.read(descriptor, _READ_BYTES)
                changed = True
        return changed

    @property
    def has_ended(self) -> bool:
        """True after `end`."""
        return bool(select.select([self._ended], [], [], 0)[0])

    def end(self) -> None:
        """End the present wait and all later ones."""
        os.write(self._end, b"\0")

    def close(self) -> None:
        """Close the descriptors, when nobody waits any more."""
        self._forget()
        os.close(self._ended)
        os.close(self._end)

    def _open(self) -> int | None:
        if self._libc is None:
            return None
        descriptor: int = self._libc.inotify_init1(os.O_CLOEXEC | os.O_NONBLOCK)
        if descriptor < 0:
            return None
        self._poll.register(descriptor, select.POLLIN)
        return descriptor

    def _forget(self) -> None:
        """Go on without inotify."""
        if self._inotify is not None:
            self._poll.unregister(self._inotify)
            os.close(self._inotify)
            self._inotify = None
