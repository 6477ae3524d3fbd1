"""The shape of the repository: allowed imports, and one test command for people and CI."""

import ast
import os
import re
import shutil
import subprocess
import tomllib
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import durations
import pytest

from zq.rooms import ROOMS, parts

ROOT = Path(__file__).parent.parent

# Layer → what it may import of ours, beside itself and the bare package `zq` (the version).
LAYERS: dict[str, set[str]] = {
    "": {"client"},
    "rooms": set(),
    "model": {"rooms"},
    "wire": {"model", "rooms"},
    "store": {"model"},
    "store.sqlite": {"model", "store", "private", "rooms"},
    "store.postgres": {"model", "store", "rooms"},
    "tick": {"model", "store", "rooms"},
    "engine": {"model", "store", "tick", "config", "settings", "rooms"},
    "service": {"model", "store", "engine", "config", "settings", "rooms"},
    "peer": {
        *("model", "wire", "store", "engine", "service", "client"),
        *("config", "settings", "rooms"),
    },
    "verbs": {"model", "wire"},
    "answers": {"model", "wire", "store", "engine", "service", "rooms", "verbs"},
    "terms": {"model", "wire", "service", "rooms"},
    "http": {
        *("http.transport", "model", "store", "wire", "engine", "service"),
        *("answers", "verbs", "terms", "config", "setting", "settings", "rooms"),
    },
    "http.transport": {"model"},
    "setting": set(),
    "settings": {"setting", "model"},
    "config": {"setting", "settings", "rooms"},
    "private": set(),
    "logfile": {"private"},
    "lightly": set(),
    "logs": {"logfile"},
    "systemd": set(),
    "keyfile": {"model"},
    "instance": {
        *("model", "wire", "store", "store.sqlite", "store.postgres", "tick", "engine", "service"),
        *("config", "setting", "settings"),
    },
    "entrance": {"model", "engine", "http", "http.transport", "config", "setting"},
    "runtime": {
        *("model", "store", "wire", "rooms", "engine", "service", "instance"),
        *("http", "http.transport", "entrance"),
        *("config", "keyfile", "logs", "setting", "systemd"),
    },
    "serving": {
        *("model", "store", "engine", "service", "instance"),
        *("http.transport", "entrance"),
        *("config", "setting", "systemd", "runtime"),
    },
    "cli": {
        *("rooms", "model", "wire", "store", "setting", "config", "instance", "keyfile", "logs"),
        *("serving", "lightly", "logfile", "systemd", "client", "verbs", "outbox", "spark"),
    },
    "client": {"model", "wire", "verbs", "client.embedded"},
    "client.embedded": {
        *("client", "model", "store", "wire", "engine", "service"),
        *("answers", "verbs", "terms", "config", "instance", "setting"),
    },
    "outbox": {"client", "model"},
    "moving": {"model"},
    "contrib": {"client", "model", "outbox", "logs"},
    "testing": {"client", "client.embedded", "model", "config", "runtime"},
    "spark": {"model", "client"},
}
PARTS = ("client.embedded", "store.sqlite", "store.postgres", "http.transport")
"""Layers of their own within another: the engine in the caller's process, which no other part of
the client knows; the stores, which only those know who choose one; and what carries requests,
which knows nothing of what they ask for."""

WINGS = ("features", "doors", "operators")
"""The folders of rooms. In a room, the first word of a file's name, or a folder, is its layer."""

WORDS = {
    "commands": "model",
    "errors": "model",
    "job": "model",
    "sqlite": "store.sqlite",
    "postgres": "store.postgres",
    "description": "http",
    "metrics": "http",
    "opening": "http",
}
"""First words of files in rooms that have another name than their layer."""

KNOWN = {
    "zq",
    "zq.cli.status",
    "zq.client.backend",
    "zq.client.options",
    "zq.client.periodic",
    "zq.client.values",
    "zq.outbox.numbering",
    "zq.spark.pipeline.bronze",
    "zq.spark.pipeline.gold",
    "zq.spark.pipeline.segments",
    "zq.spark.pipeline.silver",
    "zq.spark.pipeline.streaming",
    "zq.spark.source.options",
    "zq.spark.source.reading",
    "zq.spark.source.streaming",
}
"""Modules of the core that still import rooms. The list only becomes shorter.

The outbox is an exception: the relays of a table are a producer."""

DATABASE = {"sqlite3", "aiosqlite"}
DATABASE_USERS = {"store.sqlite", "outbox"}

AIOHTTP = {"http", "http.transport", "runtime", "cli", "client"}
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


@cache
def _import_statements(source: str) -> list[ast.Import | ast.ImportFrom]:
    tree = ast.walk(ast.parse(source))
    return [node for node in tree if isinstance(node, ast.Import | ast.ImportFrom)]


def imports(module: str, sources: Sources) -> set[str]:
    """The modules that `module` imports, wherever in its source: `from p import m` is p.m if that
    is a module, else p."""
    package = any(name.startswith(f"{module}.") for name in sources)
    found = set()
    for node in _import_statements(sources[module]):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        else:
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
    """`zq.store.rows` → `store`, `zq.features.crons.tick_due` → `tick`. Packages of rooms have no
    layer, as zq itself."""
    path = module.partition(".")[2]
    wing, _, place = path.partition(".")
    if wing in WINGS and path not in PARTS:
        file = place.partition(".")[2].partition(".")[0]
        if file == "client_embedded":
            return "client.embedded"
        word = file.partition("_")[0]
        return WORDS.get(word, word)
    parts = [part for part in PARTS if path == part or path.startswith(f"{part}.")]
    return parts[0] if parts else path.partition(".")[0]


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
            if imported.partition(".")[0] in DATABASE and own not in DATABASE_USERS:
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


def naming_rooms(sources: Sources) -> set[str]:
    """The modules outside of all rooms that import one."""
    rooms = tuple(f"{room}." for room in ROOMS)

    def in_a_room(module: str) -> bool:
        return f"{module}.".startswith(rooms)

    return {
        module
        for module in sources
        if not in_a_room(module) and any(map(in_a_room, imports(module, sources)))
    }


def test_the_core_names_no_room() -> None:
    assert naming_rooms(sources_of_zq()) == KNOWN


def test_every_room_is_in_the_list() -> None:
    folders = (path.parent for wing in WINGS for path in (ROOT / "zq" / wing).glob("*/__init__.py"))

    rooms = {".".join(folder.relative_to(ROOT).parts) for folder in folders}

    assert sorted(ROOMS) == sorted(rooms)


def test_the_parts_of_rooms_come_in_the_order_of_the_list() -> None:
    commands = [sorted(found) for found in parts("cli", "COMMANDS", dict)]

    assert commands[:3] == [["Look back"], ["Queues"], ["Queues"]]  # audit, budgets, crons
    with pytest.raises(TypeError, match=r"COMMANDS of zq\.features\.audit\.cli is no int"):
        parts("cli", "COMMANDS", int)


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
        ("zq.engine.inbox", "def f() -> None:\n    from zq.serving import serve"),
        ("zq.config", "from zq.logs import set_up"),
        ("zq.engine.inbox", "from aiohttp import web"),
        ("zq.engine.inbox", "import sqlite3"),
        ("zq.engine.inbox", "from zq.store.sqlite import store"),
        ("zq.store.rows", "from aiosqlite import Connection"),
        ("zq.client", "import aiohttp.web"),
        ("zq.runtime", "import pyspark.sql"),
        ("zq.cli.serve", "from zq.spark import pipeline\nimport matplotlib"),
        ("zq.http.transport.gate", "from zq.engine.inbox import Inbox"),
        ("zq.http.transport.gate", "from zq.http import listener"),
        ("zq.helpers", ""),
    ],
)
def test_a_breach_is_found(module: str, source: str) -> None:
    others = ["zq", "zq.http", "zq.engine", "zq.engine.http", "zq.logs", "zq.store.rows"]
    others.append("zq.store.sqlite.store")

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


TEST_COMMAND = "sh .ci/setup dev && .venv/bin/pytest -n 6 --dist loadfile"


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
    assert ("pytest -n 6 --dist loadfile ran" in run.stdout) is (failing != "setup")
    assert "FAILED (3)" in run.stdout


def test_ci_passes_if_every_stage_did_and_tells_their_minutes(tmp_path: Path) -> None:
    run = ci_in(tmp_path)

    assert run.returncode == 0, run.stderr
    table = [line.split() for line in run.stdout.splitlines()[-6:]]
    assert table[0] == ["stage", "minutes"]
    assert {row[0] for row in table[1:]} == {"setup", "tests", "lint", "format", "types"}
    assert [row[2] for row in table[1:]] == ["passed"] * 5


def test_a_run_tells_which_files_shall_begin_first_in_the_next(tmp_path: Path) -> None:
    junit = tmp_path / "junit.xml"
    junit.write_text(
        """<testsuites><testsuite name="pytest">
        <testcase classname="tests.test_config" name="test_one" time="1.5">
        <properties><property name="processor_s" value="0.71"/></properties></testcase>
        <testcase classname="tests.tick.test_late.TestClass" name="test_two" time="99.4"/>
        <testcase classname="tests.test_config" name="test_three[a]" time="1.1"/>
        <testcase classname="tests.test_logs" name="test_four" time="0.2"/>
        </testsuite></testsuites>"""
    )

    assert list(durations.lines(junit)) == [
        *("  99    0 tests/tick/test_late.py", "   3    1 tests/test_config.py")
    ]
    assert all(seconds >= durations.LEAST_S for seconds in durations.kept().values())


def test_what_ci_and_people_run_is_executable() -> None:
    assert os.access(ROOT / ".ci" / "run", os.X_OK)
    subprocess.run(["bash", "-n", ROOT / ".ci" / "run"], check=True)
    for script in ("setup", "newest"):
        subprocess.run(["sh", "-n", ROOT / ".ci" / script], check=True)


def test_what_uses_private_parts_of_a_package_is_bound_to_its_versions() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    bounds = dict(
        re.findall(r"(aiohttp|aiosqlite)>=([\d.]+,<[\d.]+)", str(project["dependencies"]))
    )
    assert set(bounds) == {"aiohttp", "aiosqlite"}
    for least, most in (bound.split(",<") for bound in bounds.values()):
        major, minor = map(int, least.split(".")[:2])
        assert most == f"{major}.{minor + 1}"


def public_classes(sources: Sources) -> Iterator[tuple[str, str]]:
    """(class, module) of each class at the top level of a module whose name has no underscore."""
    for module, source in sources.items():
        for name in re.findall(r"^class ([^\W_]\w*)", source, re.M):
            yield name, module


def test_no_two_public_classes_share_a_name() -> None:
    homes: dict[str, list[str]] = {}
    for name, module in public_classes(sources_of_zq()):
        homes.setdefault(name, []).append(module)

    shared = {name: modules for name, modules in homes.items() if len(modules) > 1}

    assert shared == {}
