"""The script by which Debian's package is configured, run on folders of its own.

`tests/deploy` installs the package itself.
"""

import hashlib
import subprocess
import sys
from pathlib import Path

import pytest

from zq import keyfile

SCRIPT = Path(__file__).parent.parent / "deploy/debian/zq.postinst"


class Machine:
    """The folders that the script fills. Its own user is nobody here."""

    def __init__(self, place: Path) -> None:
        self.state, self.settings, self.tools = (place / name for name in ("lib", "etc", "bin"))
        self.keys, self.token = self.state / "keys", self.settings / "token"
        self.tools.mkdir()
        self.provide("adduser", "exit 0")
        self.provide("python3", f'exec {sys.executable} "$@"')

    def provide(self, tool: str, script: str) -> None:
        (self.tools / tool).write_text(f"#!/bin/sh\n{script}\n")
        (self.tools / tool).chmod(0o755)

    def configure(self, former: str = "") -> int:
        """Configure the package as dpkg does, after the version `former`. Return the exit code."""
        script = SCRIPT.read_text()
        for there, here in (
            ("/var/lib/zq", str(self.state)),
            ("/etc/zq", str(self.settings)),
            ("/usr/lib/zq/bin", str(self.tools)),
            ("-o zq -g zq", "-o nobody -g nogroup"),
        ):
            script = script.replace(there, here)
        path = f"{self.tools}:/usr/sbin:/usr/bin:/sbin:/bin"
        command = ["sh", "-c", script, "postinst", "configure", former]
        return subprocess.run(command, env={"PATH": path}).returncode

    def has_key(self) -> bool:
        """True if the secret in the token's file is that of the one key."""
        secret = self.token.read_text().removesuffix("\n").encode()
        (key,) = keyfile.read(self.keys).keys
        return bool(secret) and key.digest == hashlib.sha256(secret).digest()


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_the_first_installation_makes_a_key_whose_secret_is_roots(machine: Machine) -> None:
    assert machine.configure() == 0
    assert machine.has_key()
    assert machine.keys.owner() == "nobody"
    assert machine.token.owner() == "root"
    assert [path.stat().st_mode & 0o777 for path in (machine.keys, machine.token)] == [0o600] * 2
    assert list(machine.settings.iterdir()) == [machine.token]
    assert list(machine.state.iterdir()) == [machine.keys]


def test_an_upgrade_makes_no_key_for_whoever_has_moved_the_file(machine: Machine) -> None:
    assert machine.configure() == 0
    machine.keys.unlink()
    machine.token.write_text("in use\n")
    assert machine.configure("0.1.0") == 0
    assert not machine.keys.exists()
    assert machine.token.read_text() == "in use\n"


def test_an_installation_over_keys_that_are_there_changes_none(machine: Machine) -> None:
    machine.state.mkdir()
    machine.keys.write_text("# ours\n")
    assert machine.configure() == 0
    assert machine.keys.read_text() == "# ours\n"
    assert not machine.token.exists()


def test_a_key_that_cannot_be_made_fails_the_installation_until_it_can(machine: Machine) -> None:
    machine.provide("python3", "exit 1")
    assert machine.configure() != 0
    assert not machine.token.exists()
    assert not machine.keys.exists()
    machine.provide("python3", f'exec {sys.executable} "$@"')
    assert machine.configure() == 0
    assert machine.has_key()


def test_an_installation_that_was_cut_off_goes_on_with_the_secret_that_it_has(
    machine: Machine,
) -> None:
    assert machine.configure() == 0
    secret = machine.token.read_text()
    machine.keys.unlink()
    assert machine.configure() == 0
    assert machine.token.read_text() == secret
    assert machine.has_key()


def test_an_empty_token_is_no_secret(machine: Machine) -> None:
    machine.settings.mkdir()
    machine.token.touch()
    assert machine.configure() != 0
    assert not machine.keys.exists()
