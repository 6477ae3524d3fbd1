"""Images by buildah, and containers of crun, for the processor of this machine and for arm64.

Neither needs a daemon. What a container needs of the kernel is arranged in namespaces that end with
it: crun wants control groups of the second version alone, and programs of arm64 want qemu.
"""

import contextlib
import json
import os
import subprocess
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from .roots import run

ARM64 = (
    r":arm64:M::\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00"
    r":\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff"
    ":/usr/bin/qemu-aarch64-static:F"
)
"""Tells the kernel how a program of arm64 begins, and who runs it. F: wherever its root is."""

APART = f"""
umount -R /sys/fs/cgroup
mount -t cgroup2 none /sys/fs/cgroup
exec unshare --user --mount sh -ec '
read mapped
mount -t binfmt_misc none /proc/sys/fs/binfmt_misc
printf %s "{ARM64.replace(chr(92), chr(92) * 2)}" >/proc/sys/fs/binfmt_misc/register
exec "$@"' sh "$@"
"""
"""Runs a command in namespaces of its own, after a line that says that its users are mapped."""


class Images:
    """A store of images in a folder, with a Debian to build on."""

    def __init__(self, place: Path) -> None:
        self.place = place
        # Who builds trusts whom this machine trusts.
        trusted = "usr/local/share/ca-certificates"
        root = place / "debian.tar"
        run(
            "mmdebstrap", "--variant=minbase", "--dpkgopt=force-unsafe-io",
            f'--customize-hook=mkdir -p "$1/{trusted}"',
            f"--customize-hook=upload /etc/ssl/certs/ca-certificates.crt /{trusted}/here.crt",
            "trixie", root,
        )  # fmt: skip
        container = self.buildah("from", "scratch").strip()
        self.buildah("add", container, root, "/")
        self.buildah("commit", "--rm", container, "debian:trixie-slim")

    def buildah(self, *words: str | Path, cwd: Path | None = None) -> str:
        store = ("--root", self.place / "images", "--runroot", self.place / "run")
        return run("buildah", *store, *words, cwd=cwd)

    def build(self, command: list[str], architecture: str, source: Path) -> str:
        """Build as `docker build …` would, for one processor. Return the image's name."""
        name = f"zq-{architecture}"
        here = run("dpkg", "--print-architecture").strip()
        words = [name if word == "zq" else word for word in command[2:]]
        if "--platform" not in words:
            words = ["--platform", f"linux/{architecture}", *words]
        self.buildah(
            "build", "--isolation", "chroot", "--pull-never", "--format", "docker",
            "--build-arg", f"BUILDPLATFORM=linux/{here}", *words, cwd=source,
        )  # fmt: skip
        return name

    def about(self, name: str) -> Any:
        """What an image says of itself, its `config` and `architecture`."""
        return json.loads(self.buildah("inspect", "--type", "image", name))["Docker"]

    def megabytes(self, name: str) -> float:
        (image,) = json.loads(self.buildah("images", "--json", name))
        size, unit = image["size"].split()
        assert unit == "MB"
        return float(size)


class Container:
    """Containers of one image with one volume. They have the network of this machine."""

    def __init__(self, images: Images, name: str, architecture: str, place: Path) -> None:
        self.config = images.about(name)["config"]
        self.place = place
        container = images.buildah("from", "--pull-never", "--arch", architecture, name).strip()
        self.root = images.buildah("mount", container).strip()
        self.volume = place / "volume"
        self.volume.mkdir(mode=0o700)
        user, group = map(int, self.config["User"].split(":"))
        os.chown(self.volume, user, group)
        (place / "hosts").write_text("127.0.0.1 localhost hub\n")
        self.mounts = {
            "/etc/hosts": place / "hosts",
            **dict.fromkeys(self.config["Volumes"], self.volume),
        }

    def bundle(self, words: list[str], variables: Mapping[str, str]) -> Path:
        """Describe a container to crun: the image's settings, and a root that is read-only."""
        place = self.place / f"bundle{len(list(self.place.glob('bundle*')))}"
        place.mkdir()
        run("crun", "spec", cwd=place)
        spec = json.loads((place / "config.json").read_text())
        user, group = map(int, self.config["User"].split(":"))
        environment = [*self.config["Env"], *(f"{name}={text}" for name, text in variables.items())]
        spec["process"] |= {
            "terminal": False, "args": words, "env": environment,
            "cwd": self.config["WorkingDir"], "user": {"uid": user, "gid": group},
            "capabilities": {}, "rlimits": [],
        }  # fmt: skip
        spec["root"] = {"path": self.root, "readonly": True}
        kept = ("/proc", "/dev", "/dev/pts", "/dev/shm")
        spec["mounts"] = [
            *(each for each in spec["mounts"] if each["destination"] in kept),
            {"destination": "/tmp", "type": "tmpfs", "source": "tmpfs"},
            *(
                {"destination": there, "source": str(here), "options": ["rbind", "rw"]}
                for there, here in self.mounts.items()
            ),
        ]
        shared = ("network", "cgroup", "user")
        spec["linux"] = {
            "namespaces": [
                each for each in spec["linux"]["namespaces"] if each["type"] not in shared
            ]
        }
        (place / "config.json").write_text(json.dumps(spec))
        return place

    @contextlib.contextmanager
    def running(self, words: list[str], **variables: str) -> Iterator[subprocess.Popen[str]]:
        """Run a program in a container of its own, and end it."""
        bundle = self.bundle(words, variables)
        crun = ("crun", "--root", str(self.place / "crun"), "--cgroup-manager=disabled")
        name = f"{self.place.name}-{bundle.name}"
        with subprocess.Popen(
            ["unshare", "--mount", "sh", "-ec", APART, "sh", *crun, "run", "-b", str(bundle), name],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        ) as started:  # fmt: skip
            assert started.stdin is not None
            users = Path(f"/proc/{started.pid}/ns/user")
            while users.readlink() == Path("/proc/self/ns/user").readlink():
                assert started.poll() is None
                time.sleep(0.01)
            for kind in ("uid", "gid"):
                Path(f"/proc/{started.pid}/{kind}_map").write_text("0 0 65536")
            started.stdin.write("mapped\n")
            started.stdin.flush()
            try:
                yield started
            finally:
                # crun passes it on. A program that has just begun does not hear it.
                while started.poll() is None:
                    started.terminate()
                    with contextlib.suppress(subprocess.TimeoutExpired):
                        started.communicate(timeout=60)

    def says(self, words: list[str], **variables: str) -> str:
        """What a program prints in a container of its own, which has to end well."""
        with self.running(words, **variables) as started:
            said, _ = started.communicate()
        assert started.returncode == 0, f"{words}\n{said}"
        return said
