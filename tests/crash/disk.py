"""A disk that fails or forgets on demand, under a server that does not know it (see disk.c)."""

import contextlib
import errno
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from random import Random
from typing import Literal, NamedTuple
from uuid import uuid4

SECTOR = 512
"""What a disk writes as a whole."""

VOLATILE = ("-shm", ".lock")
"""Files that a start makes anew."""


class Call(StrEnum):
    WRITE = "write"
    SYNC = "sync"
    TRUNCATE = "truncate"
    OPEN = "open"


class Fault(NamedTuple):
    """The `number`-th call of a kind fails, counted from the start of the process or from later."""

    call: Call
    number: int
    errno: int

    def __str__(self) -> str:
        return f"{errno.errorcode[self.errno]} at {self.call} {self.number}"


class Refusal(NamedTuple):
    """`io_setup` ("setup") or `io_submit` ("submit") fails whenever it is called."""

    call: Literal["setup", "submit"]
    errno: int


def compile_library(folder: Path, name: str, sources: Path = Path(__file__).parent) -> Path:
    """Compile `name`.c of a directory into a library to be preloaded."""
    source, library = sources / f"{name}.c", folder / f"{name}.so"
    flags = ["-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"]
    subprocess.run(["gcc", *flags, "-o", library, source, "-ldl"], check=True)
    return library


@dataclass(frozen=True)
class Disk:
    """A data directory that servers use through the library; made by `new_disk`."""

    library: Path
    folder: Path

    @property
    def root(self) -> Path:
        """The data directory."""
        return self.folder / "data"

    @property
    def shadow(self) -> Path:
        """What a power cut would leave of it at worst."""
        return self.folder / "shadow"

    @property
    def trigger(self) -> Path:
        """The file whose existence lets the counting of calls begin, where a test wants that."""
        return self.folder / "trigger"

    @property
    def hold(self) -> Path:
        """The file that keeps the flushes of the kernel from beginning while it exists."""
        return self.folder / "hold"

    @property
    def boot(self) -> Path:
        """The file that servers take for the machine's `boot_id`."""
        return self.folder / "boot_id"

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """No flush of the kernel begins within the context."""
        self.hold.touch()
        try:
            yield
        finally:
            self.hold.unlink()

    def let_through(self) -> None:
        """Let one flush begin although they are held: the one that waits, or the next."""
        self.hold.with_name(f"{self.hold.name}.once").touch()

    @property
    def report(self) -> Path:
        """Exists once the fault has happened."""
        return self.folder / "report"

    def environment(
        self,
        fault: Fault | None = None,
        *,
        triggered: bool = False,
        sync_ms: int = 0,
        forgets: str = "",
        refuses: Refusal | None = None,
    ) -> dict[str, str]:
        """The variables of a server on this disk.

        `triggered`: calls count from the trigger on. `sync_ms`: how much longer each sync takes.
        `forgets`: how the names of files end of which nothing is ever durable, though each sync of
        them goes well. `refuses`: how the kernel meets whoever asks it for flushes.
        """
        variables = {
            "LD_PRELOAD": str(self.library),
            "DISK_DIR": str(self.root),
            "DISK_SHADOW": str(self.shadow),
            "DISK_BOOT": str(self.boot),
            "DISK_REPORT": str(self.report),
            "DISK_HOLD": str(self.hold),
        }
        if forgets:
            variables["DISK_FORGETS"] = forgets
        if refuses is not None:
            variables["DISK_AIO"] = f"{refuses.call} {refuses.errno}"
        if sync_ms:
            variables["DISK_SYNC_MS"] = str(sync_ms)
        if fault is not None:
            variables["DISK_FAIL"] = f"{fault.call} {fault.number} {fault.errno}"
        if triggered:
            variables["DISK_FAIL_ON"] = str(self.trigger)
        return variables

    def cut_power(self, survives: float, random: Random) -> None:
        """Put the directory into a state in which a power cut may have left it.

        What was synced is there. Of all else each sector, size and name survives with this
        probability, independently of the others: a disk may write in any order. The machine has
        another boot after it.
        """
        image = self.folder / "image"
        image.mkdir()
        if (self.shadow / "root").exists() or random.random() < survives:
            for name in self._names():
                if (self.shadow / "names" / name).exists() or random.random() < survives:
                    (image / name).write_bytes(self._content(name, survives, random))
        shutil.rmtree(self.root)
        image.rename(self.root)
        self._settle()
        self.start_machine()

    def _names(self) -> set[str]:
        now = {path.name for path in self.root.iterdir()} if self.root.exists() else set()
        synced = {path.name for path in (self.shadow / "names").iterdir()}
        return {name for name in now | synced if not name.endswith(VOLATILE)}

    def _content(self, name: str, survives: float, random: Random) -> bytes:
        old, new = _read(self.shadow / "files" / name), _read(self.root / name)
        size = len(new) if random.random() < survives else len(old)
        content = bytearray(old.ljust(len(new), b"\0"))
        for start in range(0, len(new), SECTOR):
            sector = slice(start, start + SECTOR)
            if content[sector] != new[sector] and random.random() < survives:
                content[sector] = new[sector]
        return bytes(content[:size]).ljust(size, b"\0")

    def start_machine(self) -> None:
        """Give the machine another boot."""
        self.boot.write_text(f"{uuid4()}\n")

    def _settle(self) -> None:
        """Let all that is in the directory count as synced."""
        shutil.rmtree(self.shadow)
        make_shadow(self.shadow)
        for path in self.root.iterdir():
            shutil.copy(path, self.shadow / "files")
            (self.shadow / "names" / path.name).touch()
        (self.shadow / "root").touch()


def make_shadow(shadow: Path) -> None:
    (shadow / "files").mkdir(parents=True)
    (shadow / "names").mkdir()


def new_disk(library: Path, folder: Path) -> Disk:
    """A disk without a data directory: a server makes it."""
    disk = Disk(library, folder)
    make_shadow(disk.shadow)
    disk.start_machine()
    return disk


def _read(path: Path) -> bytes:
    return path.read_bytes() if path.exists() else b""
