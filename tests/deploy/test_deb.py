"""The package for Debian, built by its command, and lived with in a fresh Debian of each release.

No systemd runs in a folder. So the service is started here, as its unit says, and what systemd
would be told is read in the package's scripts.
"""

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from documents import code, commands
from process.checkout import checkout
from process.server import clean_environment

from bench.ports import free_port
from zq import __version__

from .roots import CLEAN, Root, make, run

pytestmark = pytest.mark.long  # each release takes two fresh Debians

RELEASES = {"bookworm": "12", "trixie": "13"}


class Installed(Root):
    """A Debian, and zq's package for it."""

    def __init__(self, place: Path, package: Path) -> None:
        super().__init__(place)
        self.package = package
        self.port = free_port()

    def install(self, package: Path) -> None:
        """Install a package as the documents say, or upgrade to it."""
        install, *_ = commands("deb: installing")[0].splitlines()
        assert install == "apt install ./zq_*.deb"
        shutil.copy(package, self.place / "zq_.deb")
        self.sh(f"cd /; apt-get update -qq; {install.replace('apt', 'apt-get -y', 1)}")

    def unit(self, key: str) -> str:
        """The one value of a key in the unit of the server."""
        (unit,) = self.place.glob("usr/lib/systemd/system/zq.service")
        (value,) = re.findall(rf"^{key}=(.*)$", unit.read_text(), re.M)
        return str(value)

    def ask(self, path: str) -> Any:
        """What the server answers to root."""
        token = (self.place / "etc/zq/token").read_text().strip()
        asked = urllib.request.Request(
            f"http://127.0.0.1:{self.port}{path}", headers={"Authorization": f"Bearer {token}"}
        )
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(asked, timeout=60) as answer:
            return json.load(answer)

    @contextlib.contextmanager
    def serving(self) -> Iterator[None]:
        """Run the service as its unit says, but on a port that is free here."""
        defaults = self.place / self.unit("EnvironmentFile").removeprefix("-/")
        lines = [self.unit("Environment"), *re.findall("^ZQ_.*$", defaults.read_text(), re.M)]
        settings = dict(line.split("=", 1) for line in lines)
        start = [*self.unit("ExecStart").split(), "--no-admin", "--log-format", "json"]
        with subprocess.Popen(
            self.command(*start, user=self.unit("User")),
            env={**CLEAN, **settings, "ZQ_PORT": str(self.port)},
            stdout=subprocess.PIPE,
            text=True,
        ) as apart:
            assert apart.stdout is not None
            said = (json.loads(line)["fields"]["message"] for line in apart.stdout)
            assert "serving" in said
            yield
            # `unshare` passes no signal on to the server, which is its one child.
            children = Path(f"/proc/{apart.pid}/task/{apart.pid}/children").read_text()
            os.kill(int(children), signal.SIGTERM)
            apart.communicate(timeout=60)
        assert apart.returncode == 0


@pytest.fixture(scope="module", params=RELEASES)
def debian(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    source = checkout(tmp_path_factory.mktemp("source"))
    command = code("deb: building").strip().replace("trixie", request.param)
    done = subprocess.run(
        command.split(), cwd=source, env=clean_environment(), capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-5000:]
    (package,) = source.glob("build/deb/*.deb")
    assert package.name.startswith(f"zq_{__version__}+deb{RELEASES[request.param]}_")
    place = tmp_path_factory.mktemp("root") / "debian"
    make(request.param, place)
    return Installed(place, package)


def newer(package: Path) -> Path:
    """The package under the number of a later version."""
    folder = package.with_name("newer")
    run("dpkg-deb", "--raw-extract", package, folder)
    control = folder / "DEBIAN" / "control"
    control.write_text(control.read_text().replace(f"Version: {__version__}", "Version: 99.0"))
    run("dpkg-deb", "--build", "--root-owner-group", folder, package.with_name("newer.deb"))
    return package.with_name("newer.deb")


def test_it_is_installed_upgraded_with_jobs_removed_and_purged(debian: Installed) -> None:
    debian.install(debian.package)
    assert debian.sh("zq --version").split()[-1] == __version__
    modes = debian.sh("stat -c %U:%a /var/lib/zq /var/lib/zq/keys /etc/zq/token")
    assert modes.split() == ["zq:700", "zq:600", "root:600"]
    assert "zq serve" in debian.sh("cat /usr/share/man/man1/zq.1* | zcat -f")

    _, first, push = commands("deb: installing")[0].splitlines()
    address = {"ZQ_URL": f"http://127.0.0.1:{debian.port}"}
    with debian.serving():
        debian.sh(f"{first}\n{push}", **address)
        assert debian.ask("/jobs/count") == {"count": 1}
        # Programs of other users need a key.
        with pytest.raises(AssertionError, match="ZQ_TOKEN"):
            debian.sh(push, **address)

    with (debian.place / "etc/default/zq").open("a") as settings:
        settings.write("ZQ_MAX_CONNECTIONS=500\n")
    debian.install(newer(debian.package))
    with debian.serving():
        debian.sh(f"{first}\n{push}", **address)
        assert debian.ask("/jobs/count") == {"count": 2}
    assert "ZQ_MAX_CONNECTIONS=500" in (debian.place / "etc/default/zq").read_text()

    debian.sh("apt-get remove -y zq")
    assert not (debian.place / "usr/lib/zq").exists()
    assert (debian.place / "var/lib/zq/zq.db").exists()
    debian.install(debian.package)
    with debian.serving():
        assert debian.ask("/jobs/count") == {"count": 2}
    debian.sh("apt-get purge -y zq")
    for gone in ("usr/lib/zq", "var/lib/zq", "etc/zq", "etc/default/zq"):
        assert not (debian.place / gone).exists()
    assert "zq" not in debian.sh("cut -d: -f1 /etc/passwd").split()


def test_systemd_is_told_what_to_do_with_its_units(debian: Installed, tmp_path: Path) -> None:
    debian.install(debian.package)
    scripts = debian.place / "var/lib/dpkg/info"
    assert "was-enabled 'zq.service'" in (scripts / "zq.postinst").read_text()
    assert re.search("deb-systemd-invoke .*zq.service", (scripts / "zq.postinst").read_text())
    assert "deb-systemd-invoke stop 'zq.service'" in (scripts / "zq.prerm").read_text()
    # An upgrade leaves the port open.
    assert not (scripts / "zq.preinst").exists()
    units = debian.place / "usr/lib/systemd/system"
    for unit in ("zq.service", "zq.socket", "zq-worker@.service"):
        text = (units / unit).read_text()
        assert text.startswith("[Unit]")
        assert "/opt/zq" not in text
        copy = tmp_path / unit
        copy.write_text(text.replace("/usr/bin/zq", f"{debian.place}/usr/bin/zq"))
    run("systemd-analyze", "verify", "--man=no", tmp_path / "zq.service", tmp_path / "zq.socket")
