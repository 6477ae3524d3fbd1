"""Exported segments of history: how a run finds the new ones and reads their rows."""

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import msgspec
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructType

from zq.features.history.model import MANIFEST, SEGMENT_SUFFIX, Manifest
from zq.spark.errors import NoHistory, PipelineError
from zq.spark.pipeline.files import FileInfo, Files
from zq.spark.pipeline.ledger import SourceState
from zq.spark.source.reading import HISTORY

BROKEN = "line"
"""The column for the text of a line that is not a JSON object of the record's types."""

UNREADABLE = re.compile(r"\[FAILED_READ_FILE\S*\] Encountered error while reading file (\S+)\.\s")
"""Spark's message about a file that ends too early or is not gzip."""

READ_AS = StructType([*HISTORY.fields]).add(BROKEN, StringType())


@dataclass(frozen=True)
class FoundSegments:
    """`fresh` segments are to be read, and `known` of them were read before.

    `partial` segments lack the size that their manifest says, as during a copy. They wait for the
    next run.
    """

    fresh: tuple[FileInfo, ...]
    partial: tuple[FileInfo, ...]
    known: int


def find(files: Files, folders: Iterable[str], known: Mapping[str, SourceState]) -> FoundSegments:
    """Look for segments below `folders`. A known segment that has changed is fresh again."""
    fresh, partial, seen = [], [], 0
    for folder in folders:
        infos = list(files.walk(check_folder(files, folder)))
        sizes = _sizes(files, infos)
        for info in infos:
            if not info.name.endswith(SEGMENT_SUFFIX) or info.name.startswith((".", "_")):
                continue
            if known.get(info.path) == (info.size, info.modified_at):
                seen += 1
            elif sizes.get(info.path, info.size) != info.size:
                partial.append(info)
            else:
                fresh.append(info)
    return FoundSegments(tuple(fresh), tuple(partial), seen)


def check_folder(files: Files, folder: str) -> str:
    """The absolute path of a folder of segments. Raises `NoHistory` if it does not exist."""
    root = files.absolute(folder)
    if not files.exists(root):
        raise NoHistory(f"{folder} does not exist: name a directory of exported history")
    return root


def read(spark: SparkSession, infos: Iterable[FileInfo]) -> DataFrame:
    """The rows of segments: the record's columns, `line` (see `BROKEN`), and `source`, the file."""
    reader = spark.read.schema(READ_AS).option("columnNameOfCorruptRecord", BROKEN)
    return with_source(reader.json([info.path for info in infos]))


def with_source(rows: DataFrame) -> DataFrame:
    """The rows with the name of the file that each was read from."""
    return rows.withColumn("source", F.col("_metadata.file_name"))


@contextmanager
def naming_what_is_broken() -> Iterator[None]:
    """Turn Spark's message that a file cannot be read into an error for the user."""
    try:
        yield
    except (Py4JJavaError, PySparkException) as error:
        found = UNREADABLE.search(str(error))
        if found is None:
            raise
        raise PipelineError(
            f"{found[1]} is broken, so no segment of this run was taken: copy it again, or take it "
            "away"
        ) from error


def _sizes(files: Files, infos: Iterable[FileInfo]) -> dict[str, int]:
    """Path → size of each segment that a manifest names."""
    sizes: dict[str, int] = {}
    for info in infos:
        if info.name != MANIFEST:
            continue
        try:
            manifest = msgspec.json.decode(files.read(info.path), type=Manifest)
        except msgspec.DecodeError:
            # The manifest is half copied. It only tells earlier which segments are whole.
            continue
        sizes |= {f"{info.folder}/{each.file}": each.bytes for each in manifest.segments}
    return sizes
