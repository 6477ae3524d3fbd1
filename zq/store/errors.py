"""The errors that every store raises."""

from pathlib import Path


class StoreError(Exception):
    """The store did not do what was asked. The subclasses say what else follows."""


class StoreFailed(StoreError):
    """The store is no longer reliable: the server stops, and a restart recovers.

    The changes that were being written may be stored or not.
    """


class Fenced(StoreFailed):
    """Another server has the store, or has returned this one's jobs."""


class StoreDamaged(StoreFailed):
    """A page of the store cannot be read. What lies on it may be left there, or set aside."""


class StoreFull(StoreError):
    """There is no space left. The stored data is sound."""


class StoreBusy(StoreError):
    """Another program holds the store's lock. Nothing was changed, and all data is sound."""


class StoreAway(StoreBusy):
    """The connection to the store is lost. Nothing was changed, and the store connects again."""


class RowsDiffer(StoreError):
    """A statement has changed another number of rows than a decision counted on."""

    def __init__(self) -> None:
        super().__init__("a statement has changed fewer or more rows than it was meant for")


class DirectoryInUse(Exception):
    """Another server uses the data directory."""


class DatabaseTooNew(Exception):
    """A later version wrote the database, and this version does not know its rules."""


class DatabaseTooOld(Exception):
    """An earlier version wrote the database, and may not be changed for what is asked."""


class ForeignDatabase(Exception):
    """The file is a database, but not one of zq's."""


class DamagedDatabase(Exception):
    """The copy of a database is not reliable."""


class DirectoryNotEmpty(Exception):
    """The directory, or the database of PostgreSQL, that is to be filled has data of zq's."""


class RestoreUnfinished(Exception):
    """A restore or a move into the store was cut off: the database is not complete."""


class StoreDiffers(Exception):
    """What a move has written is not what it has read."""


class FilesMoved(StoreFailed):
    """An open file has another name by now, or none: everything written to it is lost."""

    def __init__(self, path: Path) -> None:
        super().__init__(
            f"{path} was removed or replaced while it was in use: nothing more can be kept. Put"
            " back what belongs there and start again; files of a data directory are moved while"
            " its server is stopped"
        )
        self.path = path
