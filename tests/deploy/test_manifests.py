"""The files for Compose, Kubernetes and KEDA: their schemas, and whether they fit the image."""

import importlib
import shutil
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
from documents import ROOT, code
from psycopg.conninfo import conninfo_to_dict

from zq import __version__
from zq.config import SETTINGS, Settings

from .roots import run

COMPOSE = ROOT / "deploy" / "compose.yaml"
COMPOSE_POSTGRES = ROOT / "deploy" / "compose-postgres.yaml"
SERVER = ROOT / "deploy" / "kubernetes" / "server.yaml"
WORKERS = ROOT / "deploy" / "kubernetes" / "workers.yaml"


def documents(path: Path) -> list[Any]:
    """The documents of a file of YAML."""
    return [msgspec.yaml.decode(text) for text in path.read_text().split("\n---\n")]


def tool(name: str) -> str:
    """A program of the environment that runs the tests, or of this machine."""
    found = shutil.which(name, path=str(Path(sys.executable).parent)) or shutil.which(name)
    assert found, f"{name} is missing: sh .ci/setup dev long"
    return found


@pytest.mark.long
@pytest.mark.parametrize("path", [COMPOSE, COMPOSE_POSTGRES], ids=lambda path: path.name)
def test_the_compose_file_is_one_by_the_schema_of_its_specification(path: Path) -> None:
    run(tool("check-jsonschema"), "--builtin-schema", "vendor.compose-spec", path)


@pytest.mark.long
@pytest.mark.parametrize("path", [SERVER, WORKERS], ids=lambda path: path.name)
def test_the_manifests_are_ones_by_the_schemas_of_kubernetes(path: Path, tmp_path: Path) -> None:
    parts = [part for part in path.read_text().split("\n---\n") if "keda.sh" not in part]
    for number, part in enumerate(parts):
        (tmp_path / f"{number}.yaml").write_text(part)
    run(tool("kubernetes-validate"), "--strict", *sorted(tmp_path.glob("*.yaml")))


@pytest.mark.long
def test_the_manifests_are_ones_by_the_types_of_keda() -> None:
    keda = importlib.import_module("cloudcoil.models.keda.v1alpha1")
    scaled, authentication = documents(WORKERS)[1:]
    for found in (scaled, authentication):
        read = getattr(keda, found["kind"]).model_validate(found, strict=True)
        # A field that the type does not have is not in it.
        assert read.model_dump(mode="json", by_alias=True, exclude_unset=True) == found


def test_the_servers_of_the_compose_file_share_a_database_and_its_standby() -> None:
    compose = msgspec.yaml.decode(COMPOSE_POSTGRES.read_text())
    services = compose["services"]
    settings = services["hub1"]["environment"]
    assert settings == services["hub2"]["environment"]
    given = {name: text for name, text in settings.items() if name.startswith("ZQ_")}
    assert given.keys() <= {each.variable for each in SETTINGS}
    loaded = Settings.load({}, given)
    assert conninfo_to_dict(loaded.store or "")["host"] == "db1,db2"
    assert services["db1"]["environment"]["POSTGRES_DB"] == "queue"
    assert "'db2'" in compose["configs"]["primary"]["content"]
    assert "application_name=db2" in compose["configs"]["standby"]["content"]


def test_the_manifests_fit_the_image() -> None:
    service, server = documents(SERVER)
    deployment, *keda = documents(WORKERS)
    assert keda == [msgspec.yaml.decode(part) for part in code("scaled object").split("---\n")]
    assert server["spec"]["replicas"] == 1
    assert "replicas" not in deployment["spec"]
    assert keda[0]["spec"]["scaleTargetRef"]["name"] == deployment["metadata"]["name"]
    (container,) = server["spec"]["template"]["spec"]["containers"]
    (claim,) = server["spec"]["volumeClaimTemplates"]
    mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
    text = (ROOT / "deploy" / "Containerfile").read_text()
    assert f"VOLUME {mounts[claim['metadata']['name']]}\n" in text
    (exposed,) = container["ports"]
    assert f"EXPOSE {exposed['containerPort']}\n" in text
    assert [each["port"] for each in service["spec"]["ports"]] == [exposed["containerPort"]]
    for pod in (server, deployment):
        assert pod["spec"]["template"]["spec"]["securityContext"]["runAsUser"] == 7890
        assert pod["spec"]["selector"]["matchLabels"].items() <= (
            pod["spec"]["template"]["metadata"]["labels"].items()
        )
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        asked = container[probe]["httpGet"]
        assert (asked["path"], asked["port"]) == ("/health", exposed["name"])
    assert container["image"].partition(":")[2] == __version__
