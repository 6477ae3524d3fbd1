"""A start on a damaged database is refused, or salvages what can be read."""

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from process.server import refused, running
from store.rig import Ticker

from .test_damage import PAGE

JOBS = 400


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory of a stopped server with tables and indexes of several pages."""
    folder = tmp_path_factory.mktemp("sound") / "data"
    folder.mkdir()
    with closing(Ticker(folder / "zq.db")) as ticker:
        for number in range(JOBS):
            ticker.store(1, queue=f"q{number % 5}", payload=f'"{"x" * 200}"')
        ticker.store(5, payload=f'"{"y" * 20_000}"')
        ticker.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return folder


@pytest.fixture
def root(sound: Path, tmp_path: Path) -> Path:
    shutil.copytree(sound, tmp_path / "data")
    return tmp_path / "data"


def root_page(file: Path, name: str) -> int:
    with closing(sqlite3.connect(f"file:{file}?mode=ro&immutable=1", uri=True)) as connection:
        found = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", [name])
        page: int = found.fetchone()[0]
        return page


def leaf_of(file: Path, name: str) -> int:
    """The first leaf below an interior root."""
    number = root_page(file, name)
    page = file.read_bytes()[(number - 1) * PAGE : number * PAGE]
    assert page[0] in (2, 5), "the root is no interior page"
    cell = int.from_bytes(page[12:14], "big")
    return int.from_bytes(page[cell : cell + 4], "big")


def zero(file: Path, page: int) -> None:
    with file.open("r+b") as opened:
        opened.seek((page - 1) * PAGE)
        opened.write(bytes(PAGE))


def change_entries(file: Path, index: str) -> None:
    """Change entries of an index to other queues. Its pages stay pages of an index."""
    start = (leaf_of(file, index) - 1) * PAGE
    content = bytearray(file.read_bytes())
    page = content[start : start + PAGE]
    assert b"q0" in page
    content[start : start + PAGE] = page.replace(b"q0", b"q9")
    file.write_bytes(content)


async def found_by_start(root: Path, *flags: str) -> tuple[int, dict[str, str]]:
    """How many jobs a server has, and the reasons that its health names, by table."""
    async with running(root, *flags) as server, server.client() as client:
        health = (await client.get("/health")).doc
        assert health["status"] == "damaged"
        rows = {row["table"]: row["reason"] for row in health["quarantined"]["latest"]}
        return await client.count(), rows


async def test_wrong_entries_of_an_index_are_refused_or_rebuilt_by_a_salvage(root: Path) -> None:
    before = jobs_in(root)
    change_entries(root / "zq.db", "ready_by_queue")
    code, _ = await refused(root)
    assert code == 74
    count, named = await found_by_start(root, "--on-damage", "salvage")
    assert (count, list(named)) == (before, ["database"])
    with closing(sqlite3.connect(root / "zq.db")) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone()[0] == "ok"


def jobs_in(root: Path) -> int:
    with closing(sqlite3.connect(root / "zq.db")) as connection:
        count: int = connection.execute("SELECT count(*) FROM jobs").fetchone()[0]
        return count


def names_in(root: Path, start: str) -> list[str]:
    return [path.name for path in root.iterdir() if path.name.startswith(start)]


PAGES = {
    "leaf of the table": lambda file: leaf_of(file, "jobs"),
    "root of the table": lambda file: root_page(file, "jobs"),
    "leaf of an index": lambda file: leaf_of(file, "ready_by_queue"),
    "root of an index": lambda file: root_page(file, "ready_by_queue"),
    "payload": lambda file: root_page(file, "payloads"),
}


@pytest.mark.parametrize("kind", PAGES)
async def test_a_start_refuses_a_zeroed_page_or_salvages_the_rest(kind: str, root: Path) -> None:
    before = jobs_in(root)
    zero(root / "zq.db", PAGES[kind](root / "zq.db"))
    damaged = (root / "zq.db").read_bytes()
    code, server = await refused(root)
    assert code == 74
    assert "--on-damage salvage" in server.messages[-1]
    assert (root / "zq.db").read_bytes() == damaged

    count, named = await found_by_start(root, "--on-damage", "salvage")
    assert "what could be salvaged of it" in named["database"]
    lost = {"leaf of the table": 30, "root of the table": before, "payload": 5}.get(kind, 0)
    assert before - lost <= count <= before
    (kept,) = [name for name in names_in(root, "zq.db.damaged-") if not name.endswith("-wal")]
    assert (root / kept).read_bytes() == damaged
    assert not names_in(root, "zq.db.salvag")


async def test_a_file_that_is_no_database_is_refused_with_the_remedy(root: Path) -> None:
    zero(root / "zq.db", 1)
    damaged = (root / "zq.db").read_bytes()
    for flags in ((), ("--on-damage", "salvage")):
        code, server = await refused(root, *flags)
        assert code in (74, 78)
        assert "put back a copy of the directory" in server.messages[-1]
        assert (root / "zq.db").read_bytes() == damaged


async def test_a_salvage_that_was_cut_off_is_finished(root: Path) -> None:
    """The process ended after the log had moved, before the database was replaced."""
    before = jobs_in(root)
    folder = root / "zq.db.salvaged-2026-01-01T000000Z"
    folder.mkdir()
    shutil.copyfile(root / "zq.db", folder / "zq.db")
    (root / "zq.db").write_bytes(b"damaged")
    (root / "zq.db.damaged-2026-01-01T000000Z-wal").write_bytes(b"its log")
    count, named = await found_by_start(root)
    assert (count, list(named)) == (before, ["database"])
    assert (root / "zq.db.damaged-2026-01-01T000000Z").read_bytes() == b"damaged"


async def test_a_mark_of_a_bad_page_is_gone_after_a_sound_start(root: Path) -> None:
    (root / "zq.db.check").touch()
    async with running(root):
        assert not (root / "zq.db.check").exists()
