"""The package for users: it is built from this checkout, and put into an empty environment."""

import json
import subprocess
import sys
import tarfile
import tomllib
import urllib.request
import zipfile
from pathlib import Path, PurePosixPath

import pytest

from zq import __version__

from .server import clean_environment

ROOT = Path(__file__).parents[2]

HEAVY = {"pyspark", "pyarrow", "matplotlib", "textual", "cryptography", "schemathesis", "zttp"}
"""What only an extra brings."""


def run(*command: str | Path, cwd: Path) -> str:
    done = subprocess.run(
        command, cwd=cwd, env=clean_environment(), capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel and the source package."""
    place = tmp_path_factory.mktemp("dist")
    # Setuptools leaves what it makes beside what it reads.
    source = tmp_path_factory.mktemp("source")
    names = run("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", cwd=ROOT)
    for name in filter(None, names.split("\0")):
        if (ROOT / name).is_file():
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            (source / name).write_bytes((ROOT / name).read_bytes())
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", place, source, cwd=source)
    return place


@pytest.fixture(scope="module")
def environment(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of an environment into which the wheel was installed, and what it asks for."""
    place = tmp_path_factory.mktemp("installed")
    run(sys.executable, "-m", "venv", place, cwd=place)
    (wheel,) = built.glob("*.whl")
    pip = (place / "bin" / "python", "-m", "pip", "--quiet", "--disable-pip-version-check")
    run(*pip, "install", wheel, cwd=place)
    return place / "bin"


def test_its_description_is_one_that_registries_take(built: Path) -> None:
    run(sys.executable, "-m", "twine", "check", "--strict", *built.iterdir(), cwd=built)


def test_the_wheel_holds_the_product_and_nothing_else(built: Path) -> None:
    (wheel,) = built.glob("*.whl")
    held = {PurePosixPath(name) for name in zipfile.ZipFile(wheel).namelist()}
    kept = [PurePosixPath(name) for name in run("git", "ls-files", "zq", cwd=ROOT).split()]
    product = {path for path in held if path.parts[0] == "zq"}
    # Documents lie beside what they are made from, and are read in the repository.
    assert product == {path for path in kept if path.suffix != ".md"}
    assert {path.parts[0] for path in held - product} == {f"zq_queue-{__version__}.dist-info"}


def test_the_source_package_builds_the_wheel_again(built: Path, tmp_path: Path) -> None:
    (source,) = built.glob("*.tar.gz")
    with tarfile.open(source) as archive:
        archive.extractall(tmp_path, filter="data")
    (folder,) = tmp_path.iterdir()
    build = ("-m", "build", "--no-isolation", "--wheel", "--outdir", tmp_path / "dist")
    run(sys.executable, *build, folder, cwd=tmp_path)
    (wheel,), (first,) = (tmp_path / "dist").glob("*.whl"), built.glob("*.whl")
    names = [sorted(zipfile.ZipFile(file).namelist()) for file in (wheel, first)]
    assert names[0] == names[1]


def test_an_installation_brings_what_the_server_needs_alone(environment: Path) -> None:
    listing = run(environment / "python", "-m", "pip", "list", "--format=json", cwd=environment)
    names = {package["name"].lower() for package in json.loads(listing)}
    assert not names & HEAVY
    run(environment / "python", "-m", "pip", "check", cwd=environment)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["name"] in names


def test_the_first_job_in_an_empty_environment(environment: Path, tmp_path: Path) -> None:
    serve = (environment / "zq", "serve", "--port", "0", "--no-admin", "--log-format", "json")
    root = tmp_path / "root"
    with subprocess.Popen(
        [*serve, "--root-dir", root],
        cwd=tmp_path,
        env=clean_environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as server:
        try:
            assert server.stdout is not None
            said = (json.loads(line)["fields"] for line in server.stdout)
            address = next(line["addr"] for line in said if line.get("api") == "primary")
            url = f"http://{address}"
            push = (environment / "zq", "push", "mail", "{}", "--url", url)
            run(*push, cwd=tmp_path)
            opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
            with opener.open(f"{url}/jobs/count", timeout=20) as answer:
                assert json.load(answer) == {"count": 1}
        finally:
            server.terminate()
            server.communicate(timeout=20)
    assert server.returncode == 0
