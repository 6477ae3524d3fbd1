"""What `forked` makes is what a new process of zq would be."""

import os
import pty
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import forked
import pytest
from process.network import Network

ZQ = (sys.executable, "-m", "zq.cli")

ECHO = "import sys; print(sys.argv, sys.path[0], __name__); sys.exit(3)"


def is_forked(process: subprocess.Popen[bytes]) -> bool:
    """Whether it has the command line of the nursery, which it has for ever."""
    words = Path(f"/proc/{process.pid}/cmdline").read_bytes().split(b"\0")
    return any(word.endswith(b"/forked.py") for word in words)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A server that has said that it listens, in a directory of its own."""
    command = [*ZQ, "serve", "--port", "0", "--no-admin", "--root-dir", "data"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        while b"listening" not in process.stdout.readline():
            assert process.poll() is None
        yield process
        process.kill()


def test_a_server_is_a_child_of_ours_that_ends_by_a_signal(
    server: subprocess.Popen[bytes], tmp_path: Path
) -> None:
    status = Path(f"/proc/{server.pid}/status").read_text(encoding="utf-8")

    assert is_forked(server)
    assert f"PPid:\t{os.getpid()}\n" in status
    assert Path(f"/proc/{server.pid}/cwd").resolve() == tmp_path.resolve()
    assert (tmp_path / "data" / "zq.db").exists()
    server.send_signal(signal.SIGTERM)
    assert server.wait() == 0


def test_a_killed_server_says_so(server: subprocess.Popen[bytes]) -> None:
    server.kill()

    assert server.wait() == -signal.SIGKILL


@pytest.mark.parametrize(
    "words",
    [
        *([*ZQ[1:], *words.split()] for words in ("--version", "push --nonsense", "jobs --help")),
        *([*ZQ[1:], "jobs"], ["-c", ECHO, "a", "b"], ["echo.py", "a"]),
    ],
    ids=lambda words: " ".join(words),
)
def test_a_command_says_and_ends_as_an_executed_one(words: list[str], tmp_path: Path) -> None:
    (tmp_path / "echo.py").write_text(ECHO)
    environment = os.environ | {"ZQ_URL": "http://127.0.0.1:1", "COLUMNS": "70"}
    quick, plain = (
        subprocess.run(
            [*before, sys.executable, *words], cwd=tmp_path, env=environment, capture_output=True
        )
        for before in ([], ["env"])
    )

    assert (quick.returncode, quick.stdout, quick.stderr) == (
        *(plain.returncode, plain.stdout, plain.stderr),
    )


def test_an_app_is_found_in_the_working_directory(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text("print('shop imported')\nraise SystemExit(7)\n")

    done = subprocess.run([*ZQ, "worker", "shop:app"], cwd=tmp_path, capture_output=True, text=True)

    assert (done.returncode, done.stdout) == (7, "shop imported\n"), done.stderr


def test_a_terminal_is_one() -> None:
    leader, follower = pty.openpty()
    done = subprocess.run(
        [*ZQ, "--help"], stdout=follower, stderr=follower, env=os.environ | {"TERM": "xterm"}
    )
    os.close(follower)
    text = os.read(leader, 1 << 16)
    os.close(leader)

    assert done.returncode == 0
    assert b"\r\n" in text


@pytest.mark.parametrize("variable", ["PYTHONHASHSEED", "LD_LIBRARY_PATH", "LC_ALL"])
def test_a_variable_that_is_read_at_the_start_makes_another_kind(variable: str) -> None:
    plain = {"PATH": "/bin"}

    assert forked._kind("zq", plain) == forked._kind("zq", {})
    assert forked._kind("zq", plain | {variable: "0"}) != forked._kind("zq", plain)


def test_a_few_of_another_kind_are_executed_and_then_forked() -> None:
    environment = os.environ | {"LC_ALL": "0"}
    command = [*ZQ, "push", "mail", "-"]
    found = []
    for _ in range(forked.EXECUTED + 2):
        with subprocess.Popen(
            command, env=environment, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL
        ) as process:
            found.append(is_forked(process))
            process.kill()

    assert found == [False] * forked.EXECUTED + [True] * 2


def test_a_server_is_executed_in_another_network_and_forked_again_at_home() -> None:
    def start() -> tuple[bool, str]:
        with subprocess.Popen([*ZQ, "push", "mail", "-"], stdin=subprocess.PIPE) as process:
            found = is_forked(process), str(Path(f"/proc/{process.pid}/ns/net").readlink())
            process.kill()
        return found

    home = forked.namespaces()["net"]
    with Network():
        away = forked.namespaces()["net"]
        in_another = start()

    assert away != home
    assert in_another == (False, away)
    assert start() == (True, home)


def test_a_zq_in_the_working_directory_is_the_one_that_runs(tmp_path: Path) -> None:
    package = tmp_path / "zq"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "cli.py").write_text("print('the other')\n")

    done = subprocess.run([*ZQ, "--version"], cwd=tmp_path, capture_output=True, text=True)

    assert done.stdout == "the other\n"
