"""The image, built for both processors and started as a container, and the compose file."""

import json
import shlex
import subprocess
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from documents import ROOT, code
from process.checkout import checkout

from bench.ports import free_port

from .containers import Container, Images

pytestmark = pytest.mark.long  # it fetches a Debian, and qemu runs half of it

COMPOSE = ROOT / "deploy" / "compose.yaml"


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Images]:
    images = Images(tmp_path_factory.mktemp("images"))
    yield images
    # Nothing stays mounted.
    images.buildah("rm", "--all")
    images.buildah("rmi", "--all", "--force")


@pytest.fixture(scope="module", params=["amd64", "arm64"])
def image(
    request: pytest.FixtureRequest, images: Images, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Images, str, str]:
    source = checkout(tmp_path_factory.mktemp("source"))
    named = {"amd64": "containers: building", "arm64": "containers: another processor"}
    command = shlex.split(code(named[request.param]))
    return images, images.build(command, request.param, source), request.param


@pytest.fixture
def container(image: tuple[Images, str, str], tmp_path: Path) -> Container:
    return Container(*image, tmp_path)


@pytest.fixture
def port() -> int:
    return free_port()


def serving(started: subprocess.Popen[str]) -> None:
    """Wait until a server serves."""
    assert started.stdout is not None
    said = []
    for line in started.stdout:
        said.append(line)
        if line.startswith("{") and json.loads(line)["fields"]["message"] == "serving":
            return
    raise AssertionError("".join(said))


def ask(port: int, path: str) -> Any:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(f"http://127.0.0.1:{port}{path}", timeout=60) as answer:
        return json.load(answer)


def test_the_image_is_small_and_says_how_it_runs(image: tuple[Images, str, str]) -> None:
    images, name, architecture = image
    about = images.about(name)
    assert about["architecture"] == architecture
    assert about["config"]["User"] == "7890:7890"
    assert list(about["config"]["Volumes"]) == ["/var/lib/zq"]
    assert list(about["config"]["ExposedPorts"]) == ["7890/tcp"]
    assert images.megabytes(name) < 120


def test_a_container_takes_its_first_job(container: Container, port: int) -> None:
    start, *then = map(shlex.split, code("containers: first job").splitlines())
    settings = dict(start[n + 1].split("=", 1) for n, word in enumerate(start) if word == "-e")
    settings["ZQ_PORT"] = str(port)
    here = {"ZQ_URL": f"http://127.0.0.1:{port}"}
    command = [*container.config["Entrypoint"], *container.config["Cmd"], "--no-admin"]
    with container.running([*command, "--log-format", "json"], **settings) as server:
        serving(server)
        for words in then:
            assert words[:3] == ["docker", "exec", "zq"]
            assert "mail" in container.says(words[3:], **here) or "push" in words
        assert ask(port, "/jobs/count") == {"count": 1}
        kind, *check = container.config["Healthcheck"]["Test"]
        assert kind == "CMD"
        container.says(check, **settings)
        server.terminate()
        server.communicate(timeout=300)
        assert server.returncode == 0
    # The check fails where nobody answers, and the job is in the volume.
    with pytest.raises(AssertionError, match="refused"):
        container.says(check, **settings)
    assert (container.volume / "zq.db").exists()


@pytest.mark.parametrize("image", ["amd64"], indirect=True)
def test_the_compose_file_has_a_hub_and_a_worker_that_works(
    container: Container, port: int, tmp_path: Path
) -> None:
    compose = msgspec.yaml.decode(COMPOSE.read_text())
    hub, worker = compose["services"]["hub"], compose["services"]["worker"]
    assert hub["read_only"] is worker["read_only"] is True
    assert hub["volumes"] == ["hub:/var/lib/zq"]
    assert worker["volumes"] == ["./app:/app:ro"]
    (tmp_path / "app").mkdir()
    (tmp_path / "app" / "jobs.py").write_text(code("containers: compose"))
    container.mounts["/srv"] = tmp_path / "app"  # a folder of the image, as crun makes none here
    url = {"ZQ_URL": worker["environment"]["ZQ_URL"].replace("7890", str(port))}
    variables = {**worker["environment"], **url, "PYTHONPATH": "/srv"}
    serve = [*container.config["Entrypoint"], *container.config["Cmd"], "--no-admin"]
    with container.running(
        [*serve, "--log-format", "json"], ZQ_PORT=str(port), **hub["environment"]
    ) as server:
        serving(server)
        words = [*container.config["Entrypoint"], *worker["command"].split()]
        with container.running(words, **variables) as working:
            push = [
                "zq",
                "push",
                "letters",
                "--type",
                "send",
                '"ann"',
                "--wait",
                "--timeout",
                "300s",
            ]
            assert "sent to ann" in container.says(push, **variables)
            working.terminate()
            working.communicate(timeout=300)
