"""The few file operations that the lake needs, wherever it lies: local disk, HDFS, object store.

They go through Hadoop's FileSystem in Spark's driver, with Spark's own addresses and credentials. A
path may have a scheme (`hdfs://…`). Without a scheme it is on Spark's default file system. Python
looks for files on this machine by itself.
"""

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

from pyspark.sql import SparkSession

LOCAL = "file"
"""The scheme of this machine's own files. Hadoop would start an `ls` for each of them, to tell
whose it is."""


@dataclass(frozen=True)
class FileInfo:
    """A file: its full path, size in bytes, and last change in milliseconds since 1970."""

    path: str
    size: int
    modified_at: int

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]

    @property
    def folder(self) -> str:
        return self.path.rpartition("/")[0]


class Files:
    """Operations on absolute paths."""

    def __init__(self, spark: SparkSession) -> None:
        # Whole, since Java would be asked for a class called org, one called org.apache, and so on.
        self._path: Any = getattr(spark.sparkContext._jvm, "org.apache.hadoop.fs.Path")
        self._conf: Any = spark.sparkContext._jsc.hadoopConfiguration()

    def absolute(self, path: str) -> str:
        """`path` with scheme and folder, as Spark reads it."""
        there = self._path(path)
        system = there.getFileSystem(self._conf)
        return str(system.makeQualified(there).toString())

    def here(self, path: str) -> Path | None:
        """A path as Python names it, if it is on this machine's own file system."""
        there, system = self._at(path)
        return Path(there.toUri().getPath()) if system.getUri().getScheme() == LOCAL else None

    def exists(self, path: str) -> bool:
        there, system = self._at(path)
        return bool(system.exists(there))

    def walk(self, path: str) -> Iterator[FileInfo]:
        """Every file under `path`, or the file `path` itself, in the order of paths."""
        there, system = self._at(path)
        if not system.exists(there):
            return
        here = self.here(path)
        found = _found_here(here) if here else _found(system.listFiles(there, True))
        yield from sorted(found, key=lambda info: info.path)

    def folders(self, path: str) -> list[str]:
        """Names of the folders right in `path`, sorted."""
        there, system = self._at(path)
        if not system.exists(there):
            return []
        statuses = system.listStatus(there)
        return sorted(str(each.getPath().getName()) for each in statuses if each.isDirectory())

    def read(self, path: str) -> str:
        there, system = self._at(path)
        stream = system.open(there)
        try:
            return bytes(stream.readAllBytes()).decode()
        finally:
            stream.close()

    def create(self, path: str, text: str) -> bool:
        """Write a whole new file, and return when it is on disk. Return False if it exists."""
        there, system = self._at(path)
        if system.exists(there):
            return False
        draft = self._path(f"{there.getParent().toString()}/_{there.getName()}.{uuid4().hex}")
        stream = system.create(draft, True)
        try:
            stream.write(bytearray(text.encode()))
            stream.hsync()
        finally:
            stream.close()
        if not system.exists(there) and system.rename(draft, there):
            return True
        system.delete(draft, False)
        return False

    def move(self, source: str, target: str) -> None:
        """Move a file. A second call changes nothing."""
        there, system = self._at(source)
        if not system.exists(there):
            return
        goal = self._path(target)
        system.mkdirs(goal.getParent())
        if not system.rename(there, goal):
            # A store that moves by copying may leave half a copy. The source is still whole.
            system.delete(goal, False)
            if not system.rename(there, goal):
                raise OSError(f"{source} could not be moved to {target}")

    def delete(self, path: str) -> None:
        """Delete a file, or a folder with all its files, if there is one."""
        there, system = self._at(path)
        system.delete(there, True)

    def _at(self, path: str) -> tuple[Any, Any]:
        there: Any = self._path(path)
        return there, there.getFileSystem(self._conf)


def _found(listing: Any) -> Iterator[FileInfo]:
    while listing.hasNext():
        status = listing.next()
        # A URI would encode odd characters in names of partitions.
        name = str(status.getPath().toString())
        yield FileInfo(name, int(status.getLen()), int(status.getModificationTime()))


def _found_here(place: Path) -> Iterator[FileInfo]:
    """What `_found` has of a local file, or of all files below a local folder."""
    below = (
        Path(folder, name)
        for folder, _, names in os.walk(place, followlinks=True)
        for name in names
    )
    for path in [place] if place.is_file() else below:
        # A copy that ends meanwhile renames its file.
        with suppress(FileNotFoundError):
            told = path.stat()
            yield FileInfo(f"{LOCAL}:{path}", told.st_size, told.st_mtime_ns // 1_000_000)
