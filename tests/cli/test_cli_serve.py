"""`zq serve` as users and scripts run it."""

import http.client
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import click
import pytest
from click.testing import CliRunner

from zq import __version__
from zq.cli.group import OF_DIRECTORIES, main
from zq.config import SETTINGS


@pytest.fixture(autouse=True)
def _no_settings_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith(("ZQ_", "ZIZQ_"))]:
        monkeypatch.delenv(name)


def zq(*arguments: str) -> tuple[int, str]:
    """Exit code and output of a command line that ends before a server would start."""
    result = CliRunner().invoke(main, list(arguments))
    return result.exit_code, result.output


def test_the_version() -> None:
    assert zq("--version") == (0, f"zq {__version__}\n")


def test_help_names_every_setting_with_its_variable_and_default() -> None:
    code, output = zq("serve", "--help")

    text = "".join(output.split())  # the columns are wrapped
    assert code == 0
    for setting in SETTINGS:
        assert setting.flag in output
        default = "".join(setting.default_text.split())
        assert f"[{setting.variable};default:{default}]" in text


def test_bare_zq_shows_the_help_and_starts_nothing() -> None:
    assert zq() == zq("--help")
    assert "Back up and repair:\n  backup" in zq()[1]


def test_help_shows_examples() -> None:
    for arguments in (["--help"], ["serve", "--help"], ["--port", "0", "--help"]):
        code, output = zq(*arguments)
        assert code == 0
        assert "Examples:" in output


@pytest.mark.parametrize("before", [[], ["serve"]])
def test_a_bad_setting_ends_the_start_with_78(before: list[str]) -> None:
    code, output = zq(*before, "--heartbeat-interval", "3 parsecs")

    assert code == 78
    assert output == (
        'Error: --heartbeat-interval: "3 parsecs" is not a duration: '
        "write a number with its unit, such as 500ms, 3s, 10m, 1h or 7d\n"
    )


def test_root_dir_may_stand_before_the_command() -> None:
    assert zq("--root-dir", "", "serve") == zq("serve", "--root-dir", "")
    assert zq("--root-dir", "", "serve")[1].startswith('Error: --root-dir: "" is not a path')


@pytest.mark.parametrize(
    "command", ["jobs", "damage --acknowledge", "compact", "status --help", "salvage old new"]
)
def test_a_root_dir_before_a_command_that_has_none_is_refused(command: str, tmp_path: Path) -> None:
    name, *words = command.split()
    code, output = zq("--root-dir", str(tmp_path), name, *words)
    assert (code, f"Error: zq {name} takes no --root-dir" in output) == (2, True)


def test_a_root_dir_may_stand_before_every_command_that_has_one() -> None:
    def has_one(command: click.Command) -> bool:
        within = getattr(command, "commands", {}).values()
        names = {each.name for each in command.params}
        return "root_dir" in names or any(map(has_one, within))

    assert isinstance(main, click.Group)
    found = {name for name, command in main.commands.items() if has_one(command)}
    assert found == set(OF_DIRECTORIES)


def test_the_short_flag_of_the_in_flight_limit() -> None:
    assert "--global-in-flight-limit" in zq("serve", "-l", "many")[1]


@pytest.mark.parametrize(
    ("flag", "missing"),
    [
        *(("--tls-cert", "--tls-key"), ("--tls-key", "--tls-cert"), ("--tls-client-ca", "TLS")),
        *(("--admin-tls-cert", "--admin-tls-key"), ("--admin-tls-client-ca", "TLS")),
    ],
)
def test_no_server_answers_in_clear_text_where_tls_was_asked_for(
    flag: str, missing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    code, output = zq("serve", flag, "file.pem")
    assert (code, output.startswith(f"Error: {flag} needs {missing}: give ")) == (78, True)

    monkeypatch.setenv("ZIZQ_" + flag.removeprefix("--").replace("-", "_").upper(), "file.pem")
    assert zq("serve") == (code, output)


@pytest.mark.parametrize("arguments", [["serve", "--bogus"], ["--bogus"], ["serve", "extra"]])
def test_what_is_not_known_is_refused(arguments: list[str]) -> None:
    assert zq(*arguments)[0] == 2


def test_an_unknown_command_is_named() -> None:
    code, output = zq("bogus")

    assert code == 2
    assert "No such command 'bogus'" in output


# Flags of Zizq that mean nothing here, each with a value it could have there.
IGNORED = {
    "--complete-batch-size": "1000",
    "--enqueue-batch-size": "1000",
    "--license-key": "secret",
    "--license-key-check-interval": "5s",
}


@contextmanager
def running(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    """A server process, which is killed at the end if it still runs."""
    command = [sys.executable, "-m", "zq.cli", *arguments]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process
        finally:
            if process.poll() is None:
                process.kill()


def started(output: IO[str] | None) -> tuple[list[Any], Any]:
    """(the log events before it listened, the fields of the line that says where it does)."""
    assert output
    before: list[Any] = []
    for line in output:
        if '"api":"primary"' in line:
            return before, json.loads(line)["fields"]
        before.append(json.loads(line))
    raise AssertionError(f"the server never listened: {before}")


def test_a_script_that_starts_zizq_can_start_zq(tmp_path: Path) -> None:
    script = ["serve", "--port", "0", "--no-admin", "--root-dir", str(tmp_path)]
    script += ["--log-format", "json", "--log-level", "info"]
    ignored = [part for flag, value in IGNORED.items() for part in (flag, value) if part]

    with running(*script, *ignored) as server:
        before, listening = started(server.stdout)
        connection = http.client.HTTPConnection(listening["addr"], timeout=60)
        connection.request("GET", "/health")
        status = connection.getresponse().status
        connection.close()
        server.send_signal(signal.SIGTERM)
        output, errors = server.communicate(timeout=60)

    assert status == 200
    assert listening["scheme"] == "http"
    assert (server.returncode, errors) == (0, "")
    warned = [e["fields"]["flag"] for e in before if e["fields"]["message"] == "ignored flag"]
    assert sorted(warned) == sorted(IGNORED)
    assert "secret" not in json.dumps(before) + output


def test_a_second_server_on_the_directory_ends_with_75(tmp_path: Path) -> None:
    arguments = ["--port", "0", "--root-dir", str(tmp_path), "--log-format", "json"]

    with running(*arguments) as first:
        started(first.stdout)
        with running("serve", *arguments) as second:
            output, errors = second.communicate(timeout=60)
        first.send_signal(signal.SIGINT)
        first.communicate(timeout=60)

    assert second.returncode == 75
    assert str(tmp_path) in output + errors
    assert first.returncode == 0
