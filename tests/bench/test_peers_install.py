"""Finding and installing peers, with real pip and a package made here."""

import zipfile
from pathlib import Path

import pytest

from bench.peers.install import Missing, find_or_install, find_program, run
from bench.peers.roster import Mode, Peer, contenders, named, peers
from bench.peers.rows import ROWS

ADAPTERS = Path(__file__).parents[2] / "bench" / "peers" / "adapters"
METADATA = "Metadata-Version: 2.1\nName: tinyqueue\nVersion: {}\n"
WHEEL = "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
PEER = Peer("tiny", "tiny", "python", ("tinyqueue",), (Mode("default", True, ""),), "", "")


def publish(directory: Path, version: str) -> None:
    info = f"tinyqueue-{version}.dist-info"
    with zipfile.ZipFile(directory / f"tinyqueue-{version}-py3-none-any.whl", "w") as wheel:
        wheel.writestr("tinyqueue.py", "")
        wheel.writestr(f"{info}/METADATA", METADATA.format(version))
        wheel.writestr(f"{info}/WHEEL", WHEEL)
        wheel.writestr(f"{info}/RECORD", "")


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where pip finds packages, and nowhere else."""
    found = tmp_path / "index"
    found.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(found))
    return found


def test_a_peer_whose_install_failed_is_tried_again_and_then_installed_once(
    tmp_path: Path, index: Path
) -> None:
    with pytest.raises(Missing, match="tinyqueue"):
        find_or_install(PEER, tmp_path / "peers")
    publish(index, "1.0")
    home = find_or_install(PEER, tmp_path / "peers")
    assert (home.directory, home.version) == (tmp_path / "peers" / "tiny", "1.0")
    run([home.interpreter, "-c", "import tinyqueue"])
    publish(index, "2.0")
    assert find_or_install(PEER, tmp_path / "peers").version == "1.0"


def test_a_server_that_cannot_be_installed_makes_its_peer_missing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("bench.peers.install.POSTGRESQL", tmp_path)
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    with pytest.raises(Missing, match="apt-get install redis-server"):
        find_or_install(next(peer for peer in peers() if peer.name == "rq"))


def test_a_program_is_found_where_debian_puts_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("bench.peers.install.POSTGRESQL", tmp_path)
    for release in ("9", "15"):
        (tmp_path / release / "bin").mkdir(parents=True)
        (tmp_path / release / "bin" / "no-such-server").touch()
    assert find_program("no-such-server") == str(tmp_path / "15" / "bin" / "no-such-server")
    assert find_program("no-such-program") is None


def test_names_stand_for_a_peer_or_for_one_mode() -> None:
    assert [each.name for each in named(["rq/always"])] == ["rq/always"]
    assert [each.name for each in named(["zq-http", "rq"])] == [
        "zq-http",
        "rq/always",
        "rq/everysec",
    ]
    with pytest.raises(ValueError, match="no such peer: redis"):
        named(["redis"])


def test_the_roster_is_whole() -> None:
    names = [each.name for each in contenders()]
    assert len(set(names)) == len(names)
    assert contenders()[0].peer.server == "zq"
    for peer in peers():
        assert set(peer.lacks) <= set(ROWS), peer.name
        suffix = "" if peer.runtime == "node" else ".py"
        assert (ADAPTERS / f"{peer.adapter}{suffix}").exists(), peer.name
