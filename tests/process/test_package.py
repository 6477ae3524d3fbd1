"""The package for users: it is built from this checkout, and put into an empty environment."""

import contextlib
import json
import re
import subprocess
import sys
import tarfile
import tomllib
import urllib.request
import zipfile
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path, PurePosixPath

import pytest
from documents import code, commands, region
from hatchling.build import build_sdist, build_wheel
from packaging.requirements import Requirement

from zq import __version__

from .checkout import ROOT, checkout, names
from .server import clean_environment

HEAVY = {"pyspark", "pyarrow", "matplotlib", "textual", "cryptography", "schemathesis", "zttp"}
"""What only an extra brings."""


FOR_DEVELOPERS = {"bench", "dev", "docs", "long", "test"}
"""Extras of which users need to know nothing."""

PRODUCT = {
    path for path in map(PurePosixPath, names()) if path.parts[0] == "zq" and path.suffix != ".md"
}
"""What users get. The documents among it are read in the repository."""

ALONE = Path(__file__).with_name("worker_alone.py")


def run(*command: str | Path, cwd: Path) -> str:
    done = subprocess.run(
        command, cwd=cwd, env=clean_environment(), capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel and the source package, from a checkout that was upgraded."""
    place = tmp_path_factory.mktemp("dist")
    source = checkout(tmp_path_factory.mktemp("source"))
    # A module of the version before, which nothing that was built from that may bring back.
    gone = source / "zq" / "gone.py"
    gone.touch()
    with contextlib.chdir(source):
        build_wheel(str(tmp_path_factory.mktemp("before")))
        gone.unlink()
        build_wheel(str(place))
        build_sdist(str(place))
    return place


@pytest.fixture(scope="module")
def environment(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of an environment with the wheel, and with nothing but what it asks for.

    pip puts the wheel there. What it asks for is linked to where our own environment has it, which
    was made from the same requirements: to unpack all again would take ten times as long.
    """
    place = tmp_path_factory.mktemp("installed")
    run(sys.executable, "-m", "venv", "--without-pip", place, cwd=place)
    (wheel,) = built.glob("*.whl")
    own = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", place)
    run(*own, *("install", "--quiet", "--no-compile", "--no-deps", "--no-index"), wheel, cwd=place)
    (packages,) = place.glob("lib/python*/site-packages")
    (ours,) = metadata.distributions(path=[str(packages)])
    left = [(need, "") for need in ours.requires or ()]
    seen = set(left)
    while left:
        text, extra = left.pop()
        need = Requirement(text)
        if need.marker is not None and not need.marker.evaluate({"extra": extra}):
            continue
        found = metadata.distribution(need.name)
        more = {(each, of) for each in found.requires or () for of in need.extras or {""}} - seen
        seen |= more
        left += more
        for name in {file.parts[0] for file in found.files or ()} - {"..", "__pycache__"}:
            if not (packages / name).exists():
                (packages / name).symlink_to(str(found.locate_file(name)))
    return place / "bin"


def test_its_description_is_one_that_registries_take(built: Path) -> None:
    # Only the process that runs this test is to import it, which takes half a second.
    from twine.commands.check import check

    assert not check([*map(str, built.iterdir())], strict=True)


def test_the_wheel_holds_the_product_and_nothing_else(built: Path) -> None:
    (wheel,) = built.glob("*.whl")
    held = {PurePosixPath(name) for name in zipfile.ZipFile(wheel).namelist()}
    product = {path for path in held if path.parts[0] == "zq"}
    assert product == PRODUCT
    name = f"zq_queue-{__version__}"
    about = {path for path in held - product if path.parts[0] != f"{name}.dist-info"}
    assert about == {PurePosixPath(f"{name}.data/data/share/man/man1/zq.1")}


def test_the_source_package_holds_what_the_wheel_is_made_from_and_no_more(built: Path) -> None:
    (source,) = built.glob("*.tar.gz")
    with tarfile.open(source) as archive:
        files = [PurePosixPath(each.name) for each in archive.getmembers() if each.isfile()]
    held = {path.relative_to(path.parts[0]) for path in files}
    beside = {".gitignore", "CHANGELOG.md", "LICENSE", "PKG-INFO", "README.md", "docs/zq.1"}
    assert held - PRODUCT == {*map(PurePosixPath, beside), PurePosixPath("pyproject.toml")}
    assert held >= PRODUCT


def test_the_source_package_builds_the_wheel_again(built: Path, tmp_path: Path) -> None:
    (source,) = built.glob("*.tar.gz")
    run("tar", "-xf", source, cwd=tmp_path)
    (folder,) = tmp_path.iterdir()
    with contextlib.chdir(folder):
        again = tmp_path / build_wheel(str(tmp_path))
    (first,) = built.glob("*.whl")
    names = [sorted(zipfile.ZipFile(file).namelist()) for file in (again, first)]
    assert names[0] == names[1]


def test_an_installation_brings_what_the_server_needs_alone(environment: Path) -> None:
    (packages,) = environment.parent.glob("lib/python*/site-packages")
    names = {each.name.lower() for each in metadata.distributions(path=[str(packages)])}
    assert not names & HEAVY
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["name"] in names


def test_man_finds_the_page_of_an_installation(environment: Path) -> None:
    # man looks beside the programs that the shell finds: in ../share/man.
    page = environment.parent / "share" / "man" / "man1" / "zq.1"
    assert page.read_bytes() == (ROOT / "docs" / "zq.1").read_bytes()


def test_the_documents_tell_of_every_extra() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    told = re.findall(r"^\| `([\w-]+)` ", region("extras"), re.M)
    assert sorted(told) == sorted(project["optional-dependencies"].keys() - FOR_DEVELOPERS)


@contextlib.contextmanager
def serving(environment: Path, directory: Path, *admin: str) -> Iterator[str]:
    """The address of a server of this environment, which has to end well."""
    serve = (environment / "zq", "serve", "--port", "0", "--log-format", "json")
    with subprocess.Popen(
        [*serve, *(admin or ["--no-admin"]), "--root-dir", directory / "root"],
        cwd=directory,
        env=clean_environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as server:
        try:
            assert server.stdout is not None
            said = (json.loads(line)["fields"] for line in server.stdout)
            address = next(line["addr"] for line in said if line.get("api") == "primary")
            yield f"http://{address}"
        finally:
            server.terminate()
            server.communicate(timeout=60)
    assert server.returncode == 0


def test_the_first_job_in_an_empty_environment(environment: Path, tmp_path: Path) -> None:
    with serving(environment, tmp_path) as url:
        run(environment / "zq", "push", "mail", "{}", "--url", url, cwd=tmp_path)
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(f"{url}/jobs/count", timeout=60) as answer:
            assert json.load(answer) == {"count": 1}


def test_a_worker_needs_no_more_than_the_documents_say(environment: Path, tmp_path: Path) -> None:
    first, second = commands("worker alone")[0].splitlines()
    assert first == "pip install --no-deps zq-queue"
    packages = second.removeprefix("pip install ").split()
    (tmp_path / "sums.py").write_text(code("sums.py"))
    with serving(environment, tmp_path) as url:
        assert run(environment / "python", ALONE, url, *packages, cwd=tmp_path) == "3\n"
