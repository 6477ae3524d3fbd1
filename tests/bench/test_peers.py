"""The comparison with other queues: zq and one peer, real processes, tiny sizes."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

import pytest

from bench import proc
from bench.peers.cli import main
from bench.peers.compare import Plan, compare
from bench.peers.install import Home, find_or_install
from bench.peers.roster import Contender, contenders
from bench.peers.rows import ROWS, Figures
from bench.peers.summary import Sample
from bench.peers.trial import Size
from bench.report import REPOSITORY, Progress
from bench.servers import Lab, lab

JOBS = 100
PATIENT = Size(JOBS / 100_000, seconds=60.0)  # what is due must come, however slow the machine
BRIEF = Size(JOBS / 100_000, seconds=3.0)


@pytest.fixture
def place() -> Iterator[Lab]:
    with lab() as found:
        yield found


@pytest.fixture
def known() -> dict[str, Contender]:
    return {each.name: each for each in contenders()}


@pytest.fixture
def homes(known: dict[str, Contender]) -> dict[str, Home]:
    """zq, and one peer out of the environment of the tests instead of one below .peers/."""
    ours = find_or_install(known["zq-http"].peer)
    return {"zq-http": ours, "litequeue": Home(REPOSITORY, ours.interpreter, version("litequeue"))}


def run(
    place: Lab, homes: dict[str, Home], wanted: list[Contender], rows: list[str], size: Size
) -> dict[tuple[str, str], Sample]:
    samples = compare(place, Plan(rows, wanted, 1, size), homes, Progress())
    return {(sample.row, sample.contender): sample for sample in samples}


def figures(sample: Sample) -> Figures:
    assert sample.figures, sample.trouble
    return sample.figures


def test_zq_in_every_row(place: Lab, homes: dict[str, Home], known: dict[str, Contender]) -> None:
    jobs = {
        "bulk": 10_000,
        "latency": 500,
        "reply": 50,
        "depth": 1_000,
        "retries": 50 * 11,
        "flood": 100,
    }
    rows = [name for name in ROWS if name != "scheduled"]
    found = run(place, homes, [known["zq-http"]], rows, PATIENT)
    for name in rows:
        measured = figures(found[name, "zq-http"])
        assert measured.jobs == jobs.get(name, JOBS), name
        assert measured.rate > 0, name
        assert measured.server_rss and measured.server_rss > 1, name
    for name in ("latency", "reply", "flood"):
        measured = figures(found[name, "zq-http"])
        assert measured.p50 and measured.p99 and 0 < measured.p50 <= measured.p99


def test_zq_on_the_postgresql_of_the_peers(
    place: Lab, homes: dict[str, Home], known: dict[str, Contender]
) -> None:
    contender = known["zq-http-postgresql"]
    on_postgresql = homes | {contender.peer.name: homes["zq-http"]}
    found = run(place, on_postgresql, [contender], ["bulk", "process-10"], PATIENT)
    assert figures(found["bulk", contender.name]).jobs == 10_000
    assert figures(found["process-10", contender.name]).jobs == JOBS


def test_scheduled_jobs_run_when_they_are_due(
    place: Lab, homes: dict[str, Home], known: dict[str, Contender]
) -> None:
    found = run(place, homes, [known["zq-http"]], ["scheduled"], BRIEF)
    measured = figures(found["scheduled", "zq-http"])
    assert measured.jobs == JOBS
    # zq counts milliseconds, and rounds.
    assert measured.p50 is not None and measured.p50 > -1


def test_a_peer_without_a_server(
    place: Lab, homes: dict[str, Home], known: dict[str, Contender]
) -> None:
    peer = known["litequeue/fsync"]
    rows = ["single-64", "process-10", "bulk"]
    found = run(place, homes, [peer], rows, PATIENT)
    for name in rows[:-1]:
        measured = figures(found[name, peer.name])
        assert measured.jobs == JOBS
        assert measured.server_rss is None and measured.server_cpu is None
    assert found["bulk", peer.name].figures is None
    assert found["bulk", peer.name].trouble == "no bulk call"


def test_rounds_begin_with_another_contender_each(
    place: Lab, homes: dict[str, Home], known: dict[str, Contender]
) -> None:
    wanted = [known["litequeue/fsync"], known["litequeue/default"]]
    samples = compare(place, Plan(["single-1"], wanted, 2, PATIENT), homes, Progress())
    order = [(sample.round, sample.contender) for sample in samples]
    fsync, default = (each.name for each in wanted)
    assert order == [(0, fsync), (0, default), (1, default), (1, fsync)]


def test_a_peer_that_fails_is_told_with_its_reason(
    place: Lab, homes: dict[str, Home], known: dict[str, Contender]
) -> None:
    broken = replace(known["litequeue/fsync"].peer, adapter="no_such_adapter")
    contender = Contender(broken, broken.modes[0])
    found = run(place, homes, [contender], ["single-1"], PATIENT)
    sample = found["single-1", contender.name]
    assert sample.figures is None
    assert "No module named 'bench.peers.adapters.no_such_adapter'" in sample.trouble


def test_a_worker_that_ends_is_told_at_once(
    place: Lab, homes: dict[str, Home], known: dict[str, Contender]
) -> None:
    broken = replace(known["litequeue/fsync"].peer, worker="{python} -c 1/0")
    contender = Contender(broken, broken.modes[0])
    found = run(place, homes, [contender], ["process-1"], PATIENT)
    assert "ZeroDivisionError" in found["process-1", contender.name].trouble


def test_nothing_runs_or_lies_about_afterwards(
    place: Lab, homes: dict[str, Home], known: dict[str, Contender]
) -> None:
    # What servers are forked from stays, and begins with the first of them.
    with place.server("zq"):
        before = proc.tree(os.getpid())
    run(place, homes, [known["zq-http"], known["litequeue/fsync"]], ["process-1"], PATIENT)
    # What other tests have left may end meanwhile, Spark's Python workers for one.
    assert set(proc.tree(os.getpid())) <= set(before)
    assert list(place.directory.iterdir()) == []


def test_an_interrupt_ends_servers_and_workers(tmp_path: Path) -> None:
    rows = ["--rows", "process-1", "--scale", "1", "--dir", str(tmp_path)]
    command = [sys.executable, "-m", "bench", "peers", "--peers", "zq-http", *rows]
    bench = subprocess.Popen(command, cwd=REPOSITORY, start_new_session=True)
    try:
        while not any(is_producer(pid) for pid in proc.tree(bench.pid)):
            assert bench.poll() is None
            time.sleep(0.02)
        started = proc.tree(bench.pid)[1:]
        assert len(started) >= 2
        bench.send_signal(signal.SIGINT)
        assert bench.wait(60) == 130
    finally:
        bench.kill()
        bench.wait()
    assert not [pid for pid in started if Path(f"/proc/{pid}").exists()]
    assert list(tmp_path.iterdir()) == []


def is_producer(pid: int) -> bool:
    try:
        return b"bench.peers.produce" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return False


@pytest.mark.parametrize(
    ("option", "complaint"),
    [
        ("--peers=redis", "no such peer: redis"),
        ("--rows=none", "no such row: none"),
        ("--draw=README.md", "not what --json printed"),
    ],
)
def test_what_is_unknown_is_refused(
    option: str, complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    before = signal.getsignal(signal.SIGTERM)
    try:
        code: object = main([option])
    except SystemExit as end:
        code = end.code
    finally:
        signal.signal(signal.SIGTERM, before)
    assert code in (1, 2)
    assert complaint in capsys.readouterr().err


def test_the_processor_time_of_children_that_have_ended_counts() -> None:
    burn = "import time\nwhile time.process_time() < 0.3: pass"
    shell = f'"{sys.executable}" -c "$BURN"; echo done; read line'
    process = subprocess.Popen(
        ["sh", "-c", shell],
        env={**os.environ, "BURN": burn},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    with process:
        assert process.stdout and process.stdin
        assert process.stdout.readline() == b"done\n"
        assert proc.cpu_seconds(process.pid) >= 0.25
        process.stdin.close()
