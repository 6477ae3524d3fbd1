"""What a store raises, whichever it is."""

from pathlib import Path


class StoreError(Exception):
    """What was asked of the store came to nothing; the subclasses say what else follows."""


class StoreFailed(StoreError):
    """The store can no longer be relied upon: the server stops, and a restart recovers.

    What was being written may be stored or not.
    """


class StoreFull(StoreError):
    """There is no space left; what is stored is sound."""


class StoreBusy(StoreError):
    """Another program held the store for too long."""


class DirectoryInUse(Exception):
    """Another server has the data directory."""


class DatabaseTooNew(Exception):
    """The database was written by a later version, whose rules this one does not know."""


class ForeignDatabase(Exception):
    """A database, but none of zq's."""


class DamagedDatabase(Exception):
    """A copy of a database that cannot be relied upon."""


class DirectoryNotEmpty(Exception):
    """There is something where a database is to be restored."""


class RestoreUnfinished(Exception):
    """A restore into the data directory was cut off, so what it would start with is not there."""


class FilesMoved(StoreFailed):
    """A file that is open has another name by now, or none: what is written to it is lost."""

    def __init__(self, path: Path) -> None:
        super().__init__(
            f"{path} was removed or replaced while it was in use: nothing more can be kept. Put"
            " back what belongs there and start again; files of a data directory are moved while"
            " its server is stopped"
        )
        self.path = path
