"""Files for their owner alone, in a directory whose owner may be another user.

Root may work in the directory of a server of another user. That user may have put a link there to a
file which it could not change.
"""

import contextlib
import errno
import os
import stat
from pathlib import Path

PRIVATE = 0o600


def open_private(path: Path, flags: int) -> int:
    """Open a file for its owner alone, whatever the umask. `flags` are those of `os.open`.

    A file of root's is given to the owner of its directory. One of another owner keeps the mode
    that its owner chose. Raises `OSError`, also if the name is a link, and `PermissionError` if
    it is not the only name of a file.
    """
    safe = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    descriptor = os.open(path, flags | safe, PRIVATE)
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode) or found.st_nlink > 1:
            what = "It has to be a file that has no other name"
            raise PermissionError(errno.EPERM, what, os.fspath(path))
        with contextlib.suppress(PermissionError):
            os.fchmod(descriptor, PRIVATE)
        owner = path.parent.stat()
        if os.geteuid() == found.st_uid == 0 != owner.st_uid:
            # Root of a container, or of a network's file system, may not do so.
            with contextlib.suppress(PermissionError):
                os.fchown(descriptor, owner.st_uid, owner.st_gid)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor
