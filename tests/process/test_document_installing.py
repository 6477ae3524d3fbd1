"""The commands that install and upgrade zq, run as printed in a fresh checkout."""

import json
import os
import subprocess
import urllib.request
from pathlib import Path

import pytest
from documents import commands

from bench.ports import free_port

from .checkout import checkout
from .server import clean_environment
from .test_package import serving

pytestmark = pytest.mark.long  # each installs every package from the registry

SERVE = "zq serve"


def sh(command: str, directory: Path, **variables: str) -> str:
    """What commands print, of which each has to end well."""
    done = subprocess.run(
        ["sh", "-ec", command],
        cwd=directory,
        env=clean_environment() | variables,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def waiting(url: str) -> int:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(f"{url}/jobs/count", timeout=60) as answer:
        count: int = json.load(answer)["count"]
        return count


def test_a_fresh_machine_has_a_server_which_is_upgraded_with_its_jobs(tmp_path: Path) -> None:
    zq = checkout(tmp_path / "opt")
    prepare, serve = commands("fresh machine")[0].splitlines()
    assert serve == f".venv/bin/{SERVE}"
    sh(prepare, zq)
    backup, pull, upgrade, restart = commands("upgrade")[0].splitlines()
    assert pull == "git -C /opt/zq pull"  # this checkout is the newest one
    assert restart == "systemctl restart zq"  # which is what ends and starts the server below
    programs = zq / ".venv" / "bin"
    port = free_port()
    variables = {"PATH": f"{programs}:{os.environ['PATH']}"}
    variables |= {"ZQ_ADMIN_URL": f"http://127.0.0.1:{port}"}
    with serving(programs, tmp_path, "--admin-port", str(port)) as url:
        sh("zq push mail '{}'", tmp_path, **variables, ZQ_URL=url)
        sh(backup.replace("/opt/zq", str(zq)), tmp_path, **variables)
        sh(upgrade.replace("/opt/zq", str(zq)), tmp_path)
    with serving(programs, tmp_path) as url:
        assert waiting(url) == 1
    sh("zq restore before-the-upgrade.tar.gz --root-dir before", tmp_path, **variables)


def test_the_first_five_minutes_begin_in_a_checkout(tmp_path: Path) -> None:
    zq = checkout(tmp_path / "zq")
    *prepare, serve = commands("five minutes: the server")[0].splitlines()
    assert serve == SERVE
    found = sh("\n".join([*prepare, "command -v zq"]), zq).splitlines()[-1]
    assert Path(found) == zq / ".venv" / "bin" / "zq"
    with serving(Path(found).parent, tmp_path) as url:
        assert waiting(url) == 0
