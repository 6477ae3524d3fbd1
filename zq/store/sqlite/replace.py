"""Replaces a damaged database by what can be salvaged of it, for `serve --on-damage salvage`.

The damaged files stay beside the new one, under the date. The new database is complete once its
folder has the name that ends in the date: a start that is cut off before begins the salvage again,
and later it goes on where it was.
"""

from __future__ import annotations

import logging
import os
import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING

from zq.store.errors import (
    DamagedDatabase,
    DatabaseTooNew,
    DirectoryNotEmpty,
    ForeignDatabase,
    StoreDamaged,
)
from zq.store.sqlite.damage import KEPT_DATABASE
from zq.store.sqlite.files import FILE_NAME, SHM_NAME, WAL_NAME
from zq.store.sqlite.lock import sync_directory

if TYPE_CHECKING:
    from zq.store.sqlite.salvage import Salvaged

log = logging.getLogger(__name__)

_SALVAGING = f"{FILE_NAME}.salvaging"
_SALVAGED = f"{FILE_NAME}.salvaged-"

LOGGED_STEPS = 10


def replace_damaged(directory: Path, now: int) -> Salvaged:
    """Salvage the database of a directory that nobody uses, and put the result in its place.

    Raises `StoreDamaged` if nothing can be salvaged, `StoreError`, `DirectoryInUse` or OSError.
    """
    from zq.store.sqlite.salvage import salvage  # of thousands of starts one needs it

    part = directory / _SALVAGING
    shutil.rmtree(part, ignore_errors=True)
    log.warning(f"the database in {directory} is damaged: what can be read of it is salvaged")
    try:
        found = salvage(directory, part, now, _Progress())
    except (DamagedDatabase, DatabaseTooNew, DirectoryNotEmpty, ForeignDatabase) as error:
        shutil.rmtree(part, ignore_errors=True)
        raise StoreDamaged(
            f"it is damaged, and nothing can be salvaged ({error}): put back a copy of the"
            " directory"
        ) from None
    part.rename(directory / f"{_SALVAGED}{time.strftime('%Y-%m-%dT%H%M%SZ', time.gmtime())}")
    sync_directory(directory)
    finish_replacing(directory)
    fields = {"rows": sum(found.rows.values()), "gaps": found.gaps, "set_aside": found.set_aside}
    if found.log:
        log.error(f"what does not fit of its log is not salvaged: {found.log}")
    log.warning("the database is salvaged, and the damaged one is kept", extra={"fields": fields})
    return found


def finish_replacing(directory: Path) -> None:
    """Put a salvaged database in its place, if one is complete. Call it before any is opened."""
    for folder in sorted(directory.glob(f"{_SALVAGED}*")):
        kept = directory / f"{KEPT_DATABASE}{folder.name.removeprefix(_SALVAGED)}"
        if (folder / FILE_NAME).exists():
            # The log goes first: it must never be beside a database that it is not of.
            wal = directory / WAL_NAME
            if wal.exists():
                wal.rename(f"{kept}-wal")
            (directory / SHM_NAME).unlink(missing_ok=True)
            if not kept.exists():
                os.link(directory / FILE_NAME, kept)
            sync_directory(directory)
            (folder / FILE_NAME).replace(directory / FILE_NAME)
            sync_directory(directory)
        shutil.rmtree(folder)


class _Progress:
    """Logs each tenth of a salvage."""

    def __init__(self) -> None:
        self._step = 0

    def __call__(self, done: int, total: int) -> None:
        step = done * LOGGED_STEPS // max(total, 1)
        if step > self._step:
            self._step = step
            log.info("salvaging", extra={"fields": {"bytes": done, "of": total}})
