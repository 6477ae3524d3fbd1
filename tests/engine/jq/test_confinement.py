"""No program reaches the host, learns of more than its input, or takes more than its share."""

import json
import os
import resource
import tempfile
from pathlib import Path

import pytest

from zq.engine.jq.filter import MIB, JqFilter
from zq.model.errors import FilterAborted, InvalidFilter

from .processes import ENDLESS, eventually, is_usable, only_child, stat

# What jq would do with more than its input, and what is left of it: always a match.
HARMLESS = [
    "env == {}",
    "$ENV == {}",
    "$ENV.ZQ_SECRET == null",
    "[get_jq_origin, get_prog_origin] == []",
    "debug | true",
    'debug("x") | true',
    "stderr | true",
    'now | strflocaltime("%Z") == "UTC"',
]


async def test_no_program_learns_of_more_than_its_input(
    jq_filter: JqFilter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ZQ_SECRET", "x")

    found = {program: await jq_filter.matches(program, ["null"]) for program in HARMLESS}

    assert found == {program: [True] for program in HARMLESS}


@pytest.mark.parametrize("program", ["halt", "halt_error", '"bye" | halt_error(1)'])
async def test_no_program_ends_more_than_its_own_row(jq_filter: JqFilter, program: str) -> None:
    await jq_filter.check(".")
    child = only_child()

    verdicts = await jq_filter.matches(f"if . then {program} else true end", ["1", "false", "1"])

    assert verdicts == [False, True, False]
    assert only_child() == child


@pytest.mark.parametrize(
    "directive",
    [
        'import "module" as m {{search: "{directory}"}}; m::yes',
        'include "module" {{search: "{directory}"}}; yes',
        'import "data" as $d {{search: "{directory}"}}; $d == [1]',
        '# first\n\tinclude "module" {{search: "{directory}"}}; yes',
    ],
)
async def test_modules_are_refused(jq_filter: JqFilter, tmp_path: Path, directive: str) -> None:
    (tmp_path / "module.jq").write_text("def yes: true;")
    (tmp_path / "data.json").write_text("1")
    program = directive.format(directory=tmp_path)
    jq = pytest.importorskip("jq")
    assert jq.compile(program).input_text("null").first(), "jq alone reads the file"

    with pytest.raises(InvalidFilter, match=r"syntax error, unexpected (import|include)"):
        await jq_filter.check(program)


async def test_whether_a_file_exists_cannot_be_told(jq_filter: JqFilter) -> None:
    with pytest.raises(InvalidFilter, match="modulemeta is not defined"):
        await jq_filter.check("modulemeta")


async def test_the_process_is_confined(
    jq_filter: JqFilter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    await jq_filter.check(".")
    child = only_child()
    proc = Path(f"/proc/{child}")

    limits = {
        "files": resource.prlimit(child, resource.RLIMIT_NOFILE),
        "file size": resource.prlimit(child, resource.RLIMIT_FSIZE),
        "processes": resource.prlimit(child, resource.RLIMIT_NPROC),
        "core": resource.prlimit(child, resource.RLIMIT_CORE),
        "memory": resource.prlimit(child, resource.RLIMIT_AS),
    }
    assert limits == dict.fromkeys(limits, (0, 0)) | {"memory": (256 * MIB, 256 * MIB)}
    assert 0 < resource.prlimit(child, resource.RLIMIT_CPU)[0] < 700
    opened = {fd.name: str(fd.readlink()).partition(":")[0] for fd in (proc / "fd").iterdir()}
    # From 3.5 on, libffi keeps a file of its own open, whose code it maps.
    opened = {name: file for name, file in opened.items() if "/libffi.so" not in file}
    assert opened == {"0": "pipe", "1": "pipe", "2": "/dev/null"}
    assert (proc / "environ").read_bytes() == b""
    assert str((proc / "cwd").readlink()).startswith(str(tmp_path))
    assert os.listdir(tmp_path) == []  # noqa: PTH208
    assert os.getsid(child) == child


async def test_processor_time_is_limited_anew_for_each_call(jq_filter: JqFilter) -> None:
    await jq_filter.check(".")
    child = only_child()
    allowed, most = resource.prlimit(child, resource.RLIMIT_CPU)
    resource.prlimit(child, resource.RLIMIT_CPU, (allowed - 1, most))

    await jq_filter.check(".")

    assert resource.prlimit(child, resource.RLIMIT_CPU)[0] >= allowed


@pytest.mark.parametrize("program", [ENDLESS, "last(range(1e12))"])
async def test_an_endless_program_is_killed_in_time_and_the_next_call_runs(
    jq_filter: JqFilter, program: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await jq_filter.check(".")
    child = only_child()

    with monkeypatch.context() as hasty:  # on a busy machine, too short for programs that do end
        hasty.setattr(jq_filter, "_timeout", 0.5)
        with pytest.raises(FilterAborted, match=r"longer than 0\.5 s.*--filter-timeout"):
            await jq_filter.matches(program, ["null"])

    await eventually(lambda: not stat(child))
    assert await is_usable(jq_filter)


@pytest.mark.parametrize("program", ["[range(1e18)]", '"x" * 1e9', "def f: [f]; f"])
async def test_a_program_out_of_memory_ends_and_the_next_call_runs(program: str) -> None:
    jq_filter = JqFilter(timeout=600, memory=64 * MIB)

    with pytest.raises(FilterAborted, match="too much memory"):
        await jq_filter.matches(program, ["null"])

    assert await is_usable(jq_filter)
    await jq_filter.close()


async def test_a_payload_that_does_not_fit_ends_the_call_and_the_next_runs() -> None:
    jq_filter = JqFilter(timeout=600, memory=32 * MIB)

    with pytest.raises(FilterAborted, match="too much memory"):
        await jq_filter.matches(".", ["1", json.dumps("x" * (16 * MIB)), "1"])

    assert await is_usable(jq_filter)
    await jq_filter.close()
