"""Fresh Debians in folders, and commands that run in them as on a machine of their own."""

import shlex
import subprocess
from pathlib import Path

CLEAN = {
    "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
    "HOME": "/root",
    "DEBIAN_FRONTEND": "noninteractive",
}
"""The environment of commands in a root."""


def run(*command: str | Path, cwd: Path | None = None) -> str:
    """What a command prints, which has to end well."""
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True)
    assert done.returncode == 0, f"{shlex.join(map(str, command))}\n{done.stdout}{done.stderr}"
    return done.stdout


def make(suite: str, place: Path) -> None:
    """Make a minimal Debian: a folder, or a tar if the name ends so."""
    run("mmdebstrap", "--variant=minbase", "--dpkgopt=force-unsafe-io", suite, place)


class Root:
    """A Debian in a folder. Processes in it see no others, and end with the first."""

    def __init__(self, place: Path) -> None:
        self.place = place

    def command(self, *command: str, user: str = "root") -> tuple[str, ...]:
        """The command of this machine that runs one in the root."""
        apart = ("unshare", "--mount", "--pid", "--fork", "--kill-child")
        proc = f"--mount-proc={self.place / 'proc'}"
        return (*apart, proc, "chroot", f"--userspec={user}:{user}", str(self.place), *command)

    def sh(self, script: str, **variables: str) -> str:
        """What a script prints in the root, which has to end well."""
        done = subprocess.run(
            self.command("sh", "-ec", script),
            env={**CLEAN, **variables},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, f"{script}\n{done.stdout}{done.stderr}"
        return done.stdout
