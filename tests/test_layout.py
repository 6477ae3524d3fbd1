"""The shape of the repository: who may import whom, and one test command for people and CI."""

import ast
import os
import shutil
import subprocess
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

# Layer → what it may import of ours, beside itself and the bare package `zq` (the version).
LAYERS: dict[str, set[str]] = {
    "": {"client"},
    "model": set(),
    "store": {"model"},
    "wire": {"model"},
    "engine": {"model", "store", "wire"},
    "http": {"model", "store", "wire", "engine", "heap"},
    "kinds": set(),
    "config": {"kinds"},
    "logs": set(),
    "notify": set(),
    "activation": set(),
    "heap": set(),
    "keyfile": {"model"},
    "core": {"model", "store", "engine", "config"},
    "runtime": {
        *("model", "store", "wire", "engine", "http", "core"),
        *("activation", "config", "heap", "keyfile", "logs", "notify"),
    },
    "cli": {
        *("model", "store", "kinds", "config", "keyfile", "logs", "notify", "runtime"),
        *("client", "spark"),
    },
    "client": {"model", "wire", "client.embedded"},
    "client.embedded": {"client", "model", "store", "wire", "engine", "config", "core"},
    "testing": {"client", "model", "config", "runtime"},
    "spark": {"model", "client"},
}
EMBEDDED = "client.embedded"
"""The engine in the caller's process: the one part of the client that knows it."""

AIOHTTP = {"http", "runtime", "cli", "client"}
SPARK = {"pyspark", "py4j", "pyarrow", "matplotlib", "jinja2"}
SPARK_USERS = {"zq.cli.pipeline"}
"""May name them for type checkers; a test of the command holds that it imports none early."""

Sources = dict[str, str]


def sources_of_zq() -> Sources:
    """Module name → source of every module under zq/."""
    found = {}
    for path in (ROOT / "zq").rglob("*.py"):
        parts = path.relative_to(ROOT).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        found[name] = path.read_text(encoding="utf-8")
    return found


def imports(module: str, sources: Sources) -> set[str]:
    """The modules that `module` imports, wherever in its source: `from p import m` is p.m if that
    is a module, else p."""
    package = f"{module}." in " ".join(f"{name} " for name in sources)
    found = set()
    for node in ast.walk(ast.parse(sources[module])):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            # One dot is the package the module lies in: itself, if it is a package.
            up = node.level - package
            above = module.split(".")[: -up or None] if node.level else []
            origin = ".".join([*above, *([node.module] if node.module else [])])
            for alias in node.names:
                submodule = f"{origin}.{alias.name}"
                found.add(submodule if submodule in sources else origin)
    return found


def is_ours(module: str) -> bool:
    return module == "zq" or module.startswith("zq.")


def layer(module: str) -> str:
    """`zq.store.rows` → `store`; the package itself has no layer."""
    path = module.partition(".")[2]
    return EMBEDDED if path.startswith(EMBEDDED) else path.partition(".")[0]


def breaches(sources: Sources) -> Iterator[str]:
    """Each import that the table does not allow."""
    for module in sources:
        own = layer(module)
        if own and own not in LAYERS:
            yield f"{module} lies in no layer of the table"
            continue
        allowed = LAYERS[own] | {own, ""} if own else LAYERS[own]
        for imported in imports(module, sources):
            if is_ours(imported) and layer(imported) not in allowed:
                yield f"{module} imports {imported}"
            if imported.partition(".")[0] == "aiohttp" and own not in AIOHTTP:
                yield f"{module} imports {imported}"
            if imported.partition(".")[0] in SPARK and module not in SPARK_USERS and own != "spark":
                yield f"{module} imports {imported}"
            if imported.startswith("aiohttp.web") and own == "client":
                yield f"{module} imports {imported}"


def cycle(sources: Sources) -> list[str]:
    """The modules of one import cycle, or nothing."""
    graph = {module: set(filter(is_ours, imports(module, sources))) for module in sources}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def test_imports_point_down_only() -> None:
    assert list(breaches(sources_of_zq())) == []


def test_no_module_imports_itself_through_others() -> None:
    assert cycle(sources_of_zq()) == []


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("zq", "import zq.model"),
        ("zq.model.job", "import zq.store.rows"),
        ("zq.store.rows", "from zq import http"),
        ("zq.store.rows", "from zq.wire.json import encode"),
        ("zq.engine", "from .http import listener"),
        ("zq.engine.inbox", "from ..http import listener"),
        ("zq.engine.inbox", "def f() -> None:\n    from zq.runtime import serve"),
        ("zq.config", "from zq.logs import set_up"),
        ("zq.engine.inbox", "from aiohttp import web"),
        ("zq.client", "import aiohttp.web"),
        ("zq.runtime", "import pyspark.sql"),
        ("zq.cli.serve", "from zq.spark import pipeline\nimport matplotlib"),
        ("zq.helpers", ""),
    ],
)
def test_a_breach_is_found(module: str, source: str) -> None:
    others = ["zq", "zq.http", "zq.engine", "zq.engine.http", "zq.logs", "zq.store.rows"]

    found = list(breaches(dict.fromkeys(others, "") | {module: source}))

    # `from .http` inside the package zq.engine is its own zq.engine.http: no breach.
    assert bool(found) is not source.startswith("from .http")


def test_a_cycle_is_found() -> None:
    sources = {
        "zq.engine": "",
        "zq.engine.a": "from zq.engine import b",
        "zq.engine.b": "from .c import x",
        "zq.engine.c": "import zq.engine.a",
    }

    assert set(cycle(sources)) == {"zq.engine.a", "zq.engine.b", "zq.engine.c"}


TEST_COMMAND = "sh .ci/setup dev && .venv/bin/pytest -n 2 --dist loadfile"


def test_ci_runs_the_test_command_of_the_readme() -> None:
    assert f'"{TEST_COMMAND}"' in (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    lines = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    assert TEST_COMMAND in [line.strip() for line in lines]


def ci_in(directory: Path, **exit_codes: int) -> subprocess.CompletedProcess[str]:
    """Run .ci/run in `directory` with tools that only say their name and end with these codes."""
    (directory / ".ci").mkdir()
    (directory / ".venv" / "bin").mkdir(parents=True)
    shutil.copy(ROOT / ".ci" / "run", directory / ".ci" / "run")
    for name in ("setup", "pytest", "ruff", "mypy"):
        folder = ".ci" if name == "setup" else ".venv/bin"
        tool = directory / folder / name
        tool.write_text(f'#!/bin/sh\necho "{name} $* ran"\nexit {exit_codes.get(name, 0)}\n')
        tool.chmod(0o755)
    return subprocess.run(["bash", directory / ".ci" / "run"], capture_output=True, text=True)


@pytest.mark.parametrize("failing", ["setup", "pytest", "ruff", "mypy"])
def test_ci_runs_each_stage_and_fails_if_any_did(failing: str, tmp_path: Path) -> None:
    run = ci_in(tmp_path, **{failing: 3})

    assert run.returncode == 1
    for line in ("ruff check ran", "ruff format --check ran", "mypy  ran"):
        assert line in run.stdout
    assert ("pytest -n 2 --dist loadfile ran" in run.stdout) is (failing != "setup")
    assert "FAILED (3)" in run.stdout


def test_ci_passes_if_every_stage_did_and_tells_their_minutes(tmp_path: Path) -> None:
    run = ci_in(tmp_path)

    assert run.returncode == 0, run.stderr
    table = [line.split() for line in run.stdout.splitlines()[-5:]]
    assert [row[0] for row in table] == ["stage", "tests", "lint", "format", "types"]
    assert [row[2] for row in table[1:]] == ["passed"] * 4


def test_what_ci_and_people_run_is_executable() -> None:
    assert os.access(ROOT / ".ci" / "run", os.X_OK)
    subprocess.run(["bash", "-n", ROOT / ".ci" / "run"], check=True)
    subprocess.run(["sh", "-n", ROOT / ".ci" / "setup"], check=True)
