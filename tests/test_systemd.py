"""The unit file, judged by systemd's own tools, and the notifications, read from a real socket."""

import os
import re
import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner
from documents import code, words

from zq import systemd
from zq.cli.ending import EX_CONFIG
from zq.cli.group import main
from zq.config import SETTINGS, Settings
from zq.http.transport.addresses import listening_hosts

UNITS = Path(__file__).parent.parent / "systemd"
UNIT = UNITS / "zq.service"
INSTALLED = "/opt/zq/.venv/bin/zq"


@pytest.fixture
def unit(tmp_path: Path) -> Path:
    """The unit with an ExecStart that exists on this machine."""
    command = tmp_path / "zq"
    command.write_text("#!/bin/sh\n")
    command.chmod(0o755)
    text = UNIT.read_text(encoding="utf-8")
    assert f"ExecStart={INSTALLED} serve\n" in text
    copy = tmp_path / "zq.service"
    copy.write_text(text.replace(f"ExecStart={INSTALLED}", f"ExecStart={command}"))
    return copy


def analyze(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["systemd-analyze", *arguments], capture_output=True, text=True)


def test_systemd_accepts_the_unit_without_a_word(unit: Path) -> None:
    socket_unit = unit.with_name("zq.socket")
    shutil.copy(UNITS / "zq.socket", socket_unit)
    verified = analyze("verify", "--man=no", unit, socket_unit)

    assert (verified.returncode, verified.stdout + verified.stderr) == (0, "")


def test_systemd_accepts_the_unit_of_workers(tmp_path: Path) -> None:
    text = (UNITS / "zq-worker@.service").read_text(encoding="utf-8")
    command = tmp_path / ".venv/bin/zq"
    command.parent.mkdir(parents=True)
    command.write_text("#!/bin/sh\n")
    command.chmod(0o755)
    (tmp_path / "zq-worker@shop.service").write_text(text.replace("/srv/%i", str(tmp_path)))
    verified = analyze("verify", "--man=no", tmp_path / "zq-worker@shop.service")

    assert (verified.returncode, verified.stdout + verified.stderr) == (0, "")


def test_systemd_accepts_the_unit_of_a_further_server(unit: Path) -> None:
    command = unit.with_name("zq")
    text = (UNITS / "zq@.service").read_text(encoding="utf-8")
    further = unit.with_name("zq@2.service")
    further.write_text(text.replace(f"ExecStart={INSTALLED}", f"ExecStart={command}"))
    verified = analyze("verify", "--man=no", further)
    assert (verified.returncode, verified.stdout + verified.stderr) == (0, "")


def test_the_unit_of_a_further_server_differs_only_in_what_is_its_own() -> None:
    lines, first = (
        (UNITS / name).read_text(encoding="utf-8").partition("[Unit]")[2].splitlines()
        for name in ("zq@.service", "zq.service")
    )
    own = {"EnvironmentFile=/etc/default/zq-%i", "User=zq"}
    changed = {"Description=zq job queue": "Description=zq job queue, front server %i"}
    changed["After=network.target"] = "After=network.target zq.service"
    assert [line for line in lines if line not in own] == [
        changed.get(line, line) for line in first
    ]


def test_the_page_makes_the_files_that_the_unit_of_a_further_server_reads() -> None:
    text = (UNITS / "zq@.service").read_text(encoding="utf-8")
    files = {name.replace("%i", "2") for name in re.findall("^EnvironmentFile=-?(.*)$", text, re.M)}
    copy, *settings, restart, start = code("postgres: second server").splitlines()
    assert copy == "cp /opt/zq/systemd/zq@.service /etc/systemd/system/"
    named = [re.fullmatch(r"echo (ZQ_\w+)=(\d+) >>(\S+)", each) for each in settings]
    assert {each[3] for each in named if each} == files
    Settings.load({}, {each[1]: each[2] for each in named if each})
    assert (restart, start) == ("systemctl restart zq", "systemctl enable --now zq@2")


def test_the_page_makes_the_file_that_the_unit_of_workers_reads() -> None:
    text = (UNITS / "zq-worker@.service").read_text(encoding="utf-8")
    (file,) = re.findall("^EnvironmentFile=(.*)$", text, re.M)
    copy, app, server, start = code("worker unit").splitlines()
    assert copy == "cp /opt/zq/systemd/zq-worker@.service /etc/systemd/system/"
    assert all(line.endswith(file.replace("%i", "shop")) for line in (app, server))
    assert start == "systemctl enable --now zq-worker@shop"


def test_systemd_accepts_the_units_of_the_nightly_backup(tmp_path: Path) -> None:
    units = [tmp_path / "zq-backup.timer", tmp_path / "zq-backup.service"]
    for unit in units:
        unit.write_text(code(unit.name))

    verified = analyze("verify", "--man=no", *units)

    assert (verified.returncode, verified.stdout + verified.stderr) == (0, "")


@pytest.mark.parametrize(
    "name", ["keys of the service", "deploying: keys", "deploying: behind haproxy"]
)
def test_the_service_is_set_up_as_its_unit_reads_it(name: str, tmp_path: Path) -> None:
    unit = UNIT.read_text(encoding="utf-8")
    (state,) = re.findall("^StateDirectory=(.*)$", unit, re.M)
    (defaults,) = re.findall("^EnvironmentFile=-(.*)$", unit, re.M)
    file = f"/var/lib/{state}/keys"
    *changes, restart = code(name).splitlines()
    assert restart == "systemctl restart zq"
    for change in changes:
        if change.startswith(f"{INSTALLED} keys add "):
            command = change.replace(file, str(tmp_path / "keys")).split()[1:]
            assert str(tmp_path / "keys") in command
            assert CliRunner().invoke(main, command).exit_code == 0
        else:
            setting = re.fullmatch(rf"echo (ZQ_\w+)=(\S+) >>{defaults}", change)
            assert setting and setting[1] in {each.variable for each in SETTINGS}, change
            assert setting[1] != "ZQ_KEYS" or setting[2] == file
            Settings.load({}, {setting[1]: setting[2].replace(file, str(tmp_path / "keys"))})


def test_systemd_rates_the_unit_as_little_exposed(unit: Path) -> None:
    # The threshold is ten times the exposure level: 2.0 of 10, where "OK" ends at 4.9.
    rated = analyze("security", "--no-pager", "--offline=true", "--threshold=20", unit)

    assert rated.returncode == 0, rated.stdout[-200:] + rated.stderr
    score = re.search(r"exposure level for zq.service: ([0-9.]+)", rated.stdout)
    assert score
    assert f"an exposure of {score[1]}" in words("docs/operating.md")


def test_settings_that_cannot_be_used_do_not_make_systemd_restart_for_ever() -> None:
    codes = re.search(r"^RestartPreventExitStatus=(.*)$", UNIT.read_text(encoding="utf-8"), re.M)

    assert codes
    # 2 is a flag that there is none of. What may pass is tried again: the disk, the directory.
    assert codes[1].split() == ["2", str(EX_CONFIG)]


def test_no_start_is_cut_off_to_begin_again() -> None:
    text = UNIT.read_text(encoding="utf-8")
    assert re.findall("^(?:TimeoutStartSec|TimeoutSec)=(.*)$", text, re.M) == ["infinity"]


def test_the_socket_is_where_the_server_listens_by_itself() -> None:
    address = f"ListenStream={listening_hosts(Settings().host)[0]}:{Settings().port}\n"

    assert address in (UNITS / "zq.socket").read_text(encoding="utf-8")


def test_each_variable_in_the_unit_is_a_setting() -> None:
    named = set(re.findall(r"\bZQ_[A-Z_]+(?==)", UNIT.read_text(encoding="utf-8")))

    assert named
    assert named <= {setting.variable for setting in SETTINGS}


@pytest.fixture(params=["path", "abstract"])
def receiver(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[socket.socket]:
    """The other end of NOTIFY_SOCKET."""
    address = str(tmp_path / "n") if request.param == "path" else f"@zq-test-{os.getpid()}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK) as receiver:
        receiver.bind(address.replace("@", "\0"))
        monkeypatch.setenv("NOTIFY_SOCKET", address)
        yield receiver


def test_each_notification_is_one_datagram(receiver: socket.socket) -> None:
    assert systemd.ready()
    assert systemd.watchdog()
    assert systemd.status("7 jobs\nREADY=1")
    assert systemd.stopping()

    assert [receiver.recv(4096) for _ in range(4)] == [
        b"READY=1",
        b"WATCHDOG=1",
        b"STATUS=7 jobs READY=1",
        b"STOPPING=1",
    ]


def test_without_a_socket_nothing_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NOTIFY_SOCKET", raising=False)

    assert not systemd.ready()


def test_a_socket_that_is_gone_is_logged_and_harms_no_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "gone"))

    assert not systemd.ready()

    assert caplog.messages == ["systemd not notified"]


@pytest.mark.parametrize(
    ("usec", "pid", "interval"),
    [
        ("60000000", None, 30.0),
        ("60000000", "ours", 30.0),
        ("60000000", "1", None),
        ("0", None, None),
        ("", None, None),
        ("soon", None, None),
        (None, None, None),
    ],
)
def test_the_watchdog_is_fed_at_half_its_limit_if_it_is_ours(
    usec: str | None, pid: str | None, interval: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("WATCHDOG_USEC", usec), ("WATCHDOG_PID", pid)):
        if value is None:
            monkeypatch.delenv(name, raising=False)
        else:
            monkeypatch.setenv(name, value.replace("ours", str(os.getpid())))

    assert systemd.watchdog_interval() == interval
