"""jq filters: matches, refusals, and that no program reaches the host or stays."""

import asyncio
import gc
import importlib.util
import json
import os
import resource
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterable
from pathlib import Path
from typing import Any

import jq
import pytest

from zq.engine.jq import child as jq_child
from zq.engine.jq.filter import MIB, JqFilter
from zq.engine.jq.lane import MOST_WAITING, JqLane
from zq.model.errors import FilterAborted, FiltersBusy, InvalidFilter

ENDLESS = "def f: f; f"
PATIENCE_S = 30
"""How long a test waits for a condition before it fails. No test depends on its value."""


@pytest.fixture
async def jq_filter() -> AsyncIterator[JqFilter]:
    jq_filter = JqFilter(timeout=600)
    yield jq_filter
    await jq_filter.close()


_strangers: set[int] = set()


@pytest.fixture(autouse=True)
def note_strangers() -> None:
    """Leave out what other tests have started: multiprocessing keeps a helper of its own."""
    _strangers.clear()
    _strangers.update(children(os.getpid()))


def children(parent: int) -> list[int]:
    """Ids of the processes that `parent` started and did not reap, zombies included."""
    running = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdecimal()]
    found = [pid for pid in running if stat(pid)[1:2] == [str(parent)]]
    return [pid for pid in found if pid not in _strangers]


def stat(pid: int) -> list[str]:
    """The fields of proc_pid_stat(5) from the state on; nothing once the process is reaped."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return []
    return text.rpartition(")")[2].split()


def cpu_seconds(pid: int) -> float:
    fields = stat(pid)
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK") if fields else 0


def is_busy(parent: int) -> bool:
    """Whether a child of `parent` has worked far longer than its start takes."""
    return any(cpu_seconds(child) >= 0.3 for child in children(parent))


def only_child() -> int:
    (child,) = children(os.getpid())
    return child


def descriptors() -> set[str]:
    return {entry.name for entry in Path("/proc/self/fd").iterdir()}


async def eventually(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.01)


async def is_usable(jq_filter: JqFilter) -> bool:
    return await jq_filter.matches(". > 1", ["1", "2", "3"]) == [False, True, True]


# Program, payload, whether it matches.
MATCHES = [
    (".", "null", False),
    (".", "false", False),
    (".", "true", True),
    (".", "0", True),
    (".", '""', True),
    (".", "[]", True),
    (".a.b == 1", '{"a":{"b":1}}', True),
    (".a.b == 1", '{"a":{"b":2}}', False),
    (".a.b == 1", "{}", False),
    ("select(.a)", '{"a":1}', True),
    ("select(.a)", '{"a":null}', False),
    ("empty", "1", False),
    (".[]", "[null,false]", False),
    (".[]", "[null,false,0]", True),
    ("null, true", "1", True),
    ("first(range(10;infinite)) == 10", "1", True),
    ('.name | test("^AB"; "i")', '{"name":"abc"}', True),
    ('.name | test("^AB")', '{"name":"abc"}', False),
    ('.name | capture("(?<year>\\\\d+)").year == "2024"', '{"name":"in 2024"}', True),
    ('contains({tags:["x"]})', '{"tags":["xy","z"]}', True),
    ('contains({tags:["x"]})', '{"tags":["y"]}', False),
    ('.tags | index("z") == 1', '{"tags":["y","z"]}', True),
    ("any(.[]; . > 2)", "[1,2,3]", True),
    ("all(.[]; . > 2)", "[1,2,3]", False),
    ("[.[] | select(. > 1)] | add == 5", "[1,2,3]", True),
    ('to_entries | map(.key) == ["a","b"]', '{"b":1,"a":2}', False),
    ('keys == ["a","b"]', '{"b":1,"a":2}', True),
    ("[paths] | length == 3", '{"a":[1,2]}', True),
    ("def twice: . * 2; twice == 4", "2", True),
    ("reduce .[] as $x (0; . + $x) == 6", "[1,2,3]", True),
    ("try error catch . == 1", "1", True),
    (".at | fromdate == 0", '{"at":"1970-01-01T00:00:00Z"}', True),
    ('.text == "zażółć 🦊"', '{"text":"zażółć 🦊"}', True),
    ('.text == "a\\u0000b"', '{"text":"a\\u0000b"}', True),
    (".import and .include", '{"import":1,"include":2}', True),
    ('. == {import: "import \\"a\\" as a;"}', '{"import":"import \\"a\\" as a;"}', True),
    (". # a comment \\", "true", True),
    # An error ends the outputs: what came before it counts.
    ("error", "1", False),
    ("error({a: 1})", "1", False),
    (".a", "1", False),
    (".[] | .a", '[{"a":null},1]', False),
    (".[] | .a", '[{"a":7},1]', True),
    (".[] | .a", '[1,{"a":7}]', False),
    # Digits that no arithmetic touched.
    (". == 9007199254740993", "9007199254740993", True),
    (". == 9007199254740992", "9007199254740993", False),
    (". == 18446744073709551615", "18446744073709551615", True),
    ('tojson == "-9223372036854775807"', "-9223372036854775807", True),
    (". + 0 == 9007199254740992", "9007199254740993", True),
]

REFUSED = {
    "": 'Top-level program not given (try ".")',
    " \n": 'Top-level program not given (try ".")',
    "# nothing": 'Top-level program not given (try ".")',
    "def f: 1;": 'Top-level program not given (try ".")',
    "no_such": "no_such/0 is not defined at line 1, column 1",
    "1 |\n  test": "test/0 is not defined at line 2, column 3",
    "$x": "$x is not defined at line 1, column 1",
    "1 +": "syntax error, unexpected end of file at line 1, column 3",
    "1 ]": "syntax error, unexpected INVALID_CHARACTER, expecting end of file at line 1, column 3",
    "true\0": "the program contains a NUL character",
    '"\ud800"': "the program is not valid Unicode",
}

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


async def test_matches_iff_any_output_before_an_error_is_truthy(jq_filter: JqFilter) -> None:
    found = [(p, row, (await jq_filter.matches(p, [row]))[0]) for p, row, _ in MATCHES]

    assert found == MATCHES


async def test_each_row_gets_its_own_verdict(jq_filter: JqFilter) -> None:
    rows = [json.dumps({"n": n, "pad": "x" * 10_000}) for n in range(1000)]

    verdicts = await jq_filter.matches("if .n % 7 == 0 then error else .n % 2 == 0 end", rows)

    assert verdicts == [n % 7 != 0 and n % 2 == 0 for n in range(1000)]


async def test_a_call_has_a_limit_of_rows(jq_filter: JqFilter) -> None:
    assert await jq_filter.matches(".", []) == []
    with pytest.raises(ValueError, match="1001 payloads"):
        await jq_filter.matches(".", ["1"] * 1001)


async def test_a_payload_may_be_large(jq_filter: JqFilter) -> None:
    payload = json.dumps({"a": "x" * (4 * MIB), "b": 1})

    assert await jq_filter.matches(".b == 1", [payload, "{}", payload]) == [True, False, True]


async def test_what_does_not_compile_is_refused_with_its_place(jq_filter: JqFilter) -> None:
    found = {}
    for program in REFUSED:
        with pytest.raises(InvalidFilter) as refusal:
            await jq_filter.check(program)
        found[program] = refusal.value.message

    assert found == {program: f"invalid filter: {reason}" for program, reason in REFUSED.items()}
    await jq_filter.check(".")


async def test_a_refusal_with_many_rows_leaves_the_pipe_in_step(jq_filter: JqFilter) -> None:
    with pytest.raises(InvalidFilter):
        await jq_filter.matches("no_such", [json.dumps("x" * 10_000)] * 1000)

    assert await is_usable(jq_filter)


async def test_a_refusal_is_short(jq_filter: JqFilter) -> None:
    with pytest.raises(InvalidFilter) as refusal:
        await jq_filter.check("a" * 60_000)

    assert len(refusal.value.message) < 600


async def test_calls_at_the_same_time_get_their_own_answers(jq_filter: JqFilter) -> None:
    verdicts = await asyncio.gather(
        *(jq_filter.matches(f". == {n}", ["3", "5", "8"]) for n in range(10))
    )

    assert verdicts == [[n == 3, n == 5, n == 8] for n in range(10)]
    assert len(children(os.getpid())) == 1


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
    assert jq.compile(program).input_text("null").first(), "jq alone reads the file"

    with pytest.raises(InvalidFilter, match=r"syntax error, unexpected (import|include)"):
        await jq_filter.check(program)


async def test_whether_a_file_exists_cannot_be_told(jq_filter: JqFilter) -> None:
    with pytest.raises(InvalidFilter, match="modulemeta is not defined"):
        await jq_filter.check("modulemeta")


@pytest.mark.parametrize(
    "program",
    [
        *("IN(1, 2)", "IN(.[]; 1)", "tostream", "fromstream(.)"),
        *("input", "[inputs] == []", "input_filename", "input_line_number"),
        *("get_search_list", "builtins", "have_decnum", "have_literal_numbers"),
    ],
)
async def test_what_the_engine_of_zizq_does_not_have_is_not_defined(
    jq_filter: JqFilter, program: str
) -> None:
    with pytest.raises(InvalidFilter, match=r"invalid filter: \w+ is not defined$"):
        await jq_filter.check(program)


async def test_a_program_may_define_what_is_not_there(jq_filter: JqFilter) -> None:
    program = "def IN($x): . == $x; IN(1)"

    assert await jq_filter.matches(program, ["1", "2"]) == [True, False]


@pytest.mark.parametrize(
    ("program", "verdicts"),
    [
        (". / 0", [True, False, True, False]),
        (". / 0 > 5", [True, False, False, False]),
        (". / 0 == -infinite", [False, False, True, False]),
        ("(. / 0) | isnan", [False, True, False, False]),
        (". / 2 == 0.5", [True, False, False, False]),
        ('. / "," == ["a", "b"]', [False, False, False, True]),
    ],
)
async def test_a_number_divided_by_zero_is_infinite(
    jq_filter: JqFilter, program: str, verdicts: list[bool]
) -> None:
    assert await jq_filter.matches(program, ["1", "0", "-1", '"a,b"']) == verdicts


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
async def test_an_endless_program_is_killed_in_time_and_the_next_call_runs(program: str) -> None:
    jq_filter = JqFilter(timeout=0.5)
    await jq_filter.check(".")
    child = only_child()

    with pytest.raises(FilterAborted, match=r"longer than 0\.5 s.*--filter-timeout"):
        await jq_filter.matches(program, ["null"])

    await eventually(lambda: not stat(child))
    assert await is_usable(jq_filter)
    await jq_filter.close()


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


def endless(count: int) -> list[str]:
    """Programs without an end, each another one."""
    return [f"def f{n}: f{n}; f{n}" for n in range(count)]


async def until_busy(calls: list[asyncio.Task[list[bool]]]) -> None:
    await eventually(lambda: is_busy(os.getpid()))
    assert not any(call.done() for call in calls)


async def cancel(calls: Iterable[asyncio.Task[Any]]) -> None:
    for call in calls:
        call.cancel()
    await asyncio.gather(*calls, return_exceptions=True)


async def test_a_filter_that_has_behaved_does_not_wait_for_endless_ones() -> None:
    jq_filter = JqFilter(timeout=16)
    assert await jq_filter.matches(".n == 1", ['{"n":1}']) == [True]
    calls = [asyncio.create_task(jq_filter.matches(p, ["null"])) for p in endless(12)]
    await until_busy(calls)

    assert await jq_filter.matches(".n == 1", ['{"n":1}']) == [True]

    assert not any(call.done() for call in calls)
    await cancel(calls)
    await jq_filter.close()


async def test_a_line_full_of_new_filters_shuts_out_none_that_has_behaved() -> None:
    jq_filter = JqFilter(timeout=16)
    assert await jq_filter.matches(".n == 1", ['{"n":1}']) == [True]
    calls = [asyncio.create_task(jq_filter.matches(p, ["null"])) for p in endless(MOST_WAITING + 1)]
    await until_busy(calls)
    with pytest.raises(FiltersBusy):
        await jq_filter.matches("1", ["null"])

    assert await jq_filter.matches(".n == 1", ['{"n":1}']) == [True]

    await cancel(calls)
    await jq_filter.close()


async def make_slow(jq_filter: JqFilter, program: str, payload: str) -> None:
    """Have a program end its process, by which it is known from then on."""
    call = asyncio.create_task(jq_filter.matches(program, [payload]))
    await eventually(lambda: is_busy(os.getpid()))
    os.kill(only_child(), signal.SIGKILL)
    with pytest.raises(FilterAborted):
        await call


async def test_filters_that_are_known_to_be_slow_keep_no_new_one_waiting(
    jq_filter: JqFilter,
) -> None:
    await make_slow(jq_filter, ENDLESS, "null")
    calls = [asyncio.create_task(jq_filter.matches(ENDLESS, ["null"])) for _ in range(12)]
    await until_busy(calls)

    assert await jq_filter.matches(".n == 1", ['{"n":1}']) == [True]

    assert not any(call.done() for call in calls)
    assert len(children(os.getpid())) == 2
    await cancel(calls)


async def test_a_filter_that_is_quick_again_goes_with_the_quick_ones(jq_filter: JqFilter) -> None:
    program = "if . == 1 then def f: f; f else . == 2 end"
    await make_slow(jq_filter, program, "1")
    assert await jq_filter.matches(program, ["2"]) == [True]
    assert len(children(os.getpid())) == 1

    assert await jq_filter.matches(program, ["2"]) == [True]

    assert len(children(os.getpid())) == 2


async def test_the_line_is_bounded_and_whoever_is_refused_may_come_again(
    jq_filter: JqFilter,
) -> None:
    calls = [asyncio.create_task(jq_filter.matches(p, ["null"])) for p in endless(MOST_WAITING + 1)]
    await until_busy(calls)
    for _ in range(2):
        with pytest.raises(FiltersBusy, match="try again later") as refusal:
            await jq_filter.matches(".", ["null"])
    assert refusal.value.retry_after_s >= 1

    calls.pop().cancel()
    await asyncio.sleep(0)
    waiting = asyncio.create_task(jq_filter.matches(".", ["1"]))
    await cancel(calls)

    assert await waiting == [True]


async def test_the_time_out_of_a_call_covers_its_wait_for_others() -> None:
    lane = JqLane(256 * MIB, 600)

    async def run(program: str, seconds: float) -> None:
        async with asyncio.timeout(seconds) as limit:
            await lane.run(program.encode(), ["1"], limit, seconds=600)

    running = asyncio.create_task(run(ENDLESS, 600))
    await eventually(lambda: is_busy(os.getpid()))
    with pytest.raises(TimeoutError):
        await run(".", 0.01)

    assert not running.done()
    await cancel([running])
    # Nothing is left of it in the line.
    await run(".", 600)
    await lane.close()


async def test_a_process_that_dies_during_a_call_is_replaced(jq_filter: JqFilter) -> None:
    call = asyncio.create_task(jq_filter.matches(ENDLESS, ["null"]))
    await eventually(lambda: is_busy(os.getpid()))

    os.kill(only_child(), signal.SIGKILL)

    with pytest.raises(FilterAborted, match="status -9"):
        await call
    assert await is_usable(jq_filter)


async def test_a_process_that_died_between_calls_costs_no_call(jq_filter: JqFilter) -> None:
    threads = threading.active_count()
    await jq_filter.check(".")
    child = only_child()

    os.kill(child, signal.SIGKILL)

    # asyncio learns of the death in a thread, which tells the loop before it ends.
    await eventually(lambda: not stat(child) and threading.active_count() == threads)
    for _ in range(10):
        await asyncio.sleep(0)
    assert await is_usable(jq_filter)
    assert only_child() != child


async def test_a_stop_of_the_whole_service_does_not_end_a_call(jq_filter: JqFilter) -> None:
    await jq_filter.check(".")
    child = only_child()

    os.kill(child, signal.SIGTERM)

    assert await is_usable(jq_filter)
    assert only_child() == child


async def test_a_cancelled_call_does_not_answer_the_next(jq_filter: JqFilter) -> None:
    call = asyncio.create_task(jq_filter.matches(ENDLESS, ["null"]))
    await eventually(lambda: is_busy(os.getpid()))
    child = only_child()

    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call

    assert await is_usable(jq_filter)
    await eventually(lambda: not stat(child))


async def test_a_call_cancelled_at_any_step_leaves_the_pipe_in_step(jq_filter: JqFilter) -> None:
    payloads = [json.dumps("x" * 1000)] * 1000
    for steps in range(20):
        call = asyncio.create_task(jq_filter.matches(".", payloads))
        for _ in range(steps):
            await asyncio.sleep(0)
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)

        assert await is_usable(jq_filter)

    await eventually(lambda: len(children(os.getpid())) == 1)


async def test_a_call_cancelled_in_the_queue_leaves_the_running_one_alone(
    jq_filter: JqFilter,
) -> None:
    await jq_filter.check(".")
    child = only_child()
    running = asyncio.create_task(jq_filter.matches("last(range(1e5)) == 99999", ["1", "1"]))
    waiting = asyncio.create_task(jq_filter.matches(".", ["null"]))
    await asyncio.sleep(0)

    waiting.cancel()

    assert await running == [True, True]
    assert waiting.cancelled()
    assert only_child() == child


async def test_a_process_that_cannot_start_aborts_the_call_only(
    jq_filter: JqFilter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "missing"))
    with pytest.raises(FilterAborted, match="did not start"):
        await jq_filter.check(".")

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert await is_usable(jq_filter)


async def test_close_ends_calls_and_leaves_no_process_and_no_descriptor() -> None:
    before = descriptors()
    jq_filter = JqFilter(timeout=600)
    calls = [asyncio.create_task(jq_filter.matches(ENDLESS, ["null"])) for _ in range(3)]
    await eventually(lambda: is_busy(os.getpid()))

    await jq_filter.close()

    ends = await asyncio.gather(*calls, return_exceptions=True)
    assert [type(end) for end in ends] == [FilterAborted] * 3
    assert children(os.getpid()) == []
    assert descriptors() == before
    with pytest.raises(FilterAborted, match="stopping"):
        await jq_filter.check(".")
    await jq_filter.close()


@pytest.mark.parametrize("steps", range(10))
async def test_close_ends_a_call_whose_process_is_just_starting(steps: int) -> None:
    jq_filter = JqFilter(timeout=600)
    call = asyncio.create_task(jq_filter.matches(ENDLESS, ["null"]))
    for _ in range(steps):
        await asyncio.sleep(0)

    async with asyncio.timeout(PATIENCE_S):
        await jq_filter.close()

    with pytest.raises(FilterAborted):
        await call
    assert children(os.getpid()) == []


async def test_ended_processes_leave_no_zombie_and_no_descriptor() -> None:
    gc.collect()  # What earlier tests left behind may close at any time.
    before = descriptors()
    for steps in range(30):
        jq_filter = JqFilter(timeout=600, memory=64 * MIB)
        call = asyncio.create_task(jq_filter.matches('"x" * 1e9', ["null"]))
        # Cut short: while the process starts, or not at all.
        for _ in range(steps if steps < 20 else 0):
            await asyncio.sleep(0)
        if steps < 20:
            call.cancel()
        await asyncio.gather(call, return_exceptions=True)
        await jq_filter.close()

    assert children(os.getpid()) == []
    assert descriptors() <= before


def test_the_process_ends_with_its_parent_even_in_the_middle_of_a_program() -> None:
    script = (
        "import asyncio; from zq.engine.jq.filter import JqFilter;"
        f"asyncio.run(JqFilter(timeout=3600).matches({ENDLESS!r}, ['null']))"
    )
    with subprocess.Popen([sys.executable, "-c", script]) as parent:
        deadline = time.monotonic() + PATIENCE_S
        while not is_busy(parent.pid):
            assert time.monotonic() < deadline
            time.sleep(0.01)
        (child,) = children(parent.pid)

        parent.kill()

    deadline = time.monotonic() + PATIENCE_S
    while (fields := stat(child)) and fields[0] != "Z":
        assert time.monotonic() < deadline, "the process outlived its parent"
        time.sleep(0.01)


def run_alone(requests: bytes, cpu_seconds: int) -> subprocess.CompletedProcess[bytes]:
    """Run the child program by hand on `requests`, then the end of input."""
    found = importlib.util.find_spec("jq")
    assert found is not None
    assert found.origin is not None
    options = [str(Path(found.origin).parent), str(64 * MIB), str(cpu_seconds)]
    return subprocess.run(
        [sys.executable, "-I", "-S", jq_child.__file__, *options],
        input=requests,
        capture_output=True,
    )


def test_the_child_program_speaks_its_protocol_and_ends_with_its_input() -> None:
    requests = (
        struct.pack(">?II", False, 1, 2) + b"." + struct.pack(">I4sI4s", 4, b"true", 4, b"null")
    )

    run = run_alone(requests, 60)

    assert run.stdout == struct.pack(">?I", True, 0) + struct.pack(">?I2s", True, 2, b"\1\0")
    assert (run.returncode, run.stderr) == (0, b"")


def test_the_kernel_ends_a_program_that_outstays_its_processor_time() -> None:
    program = ENDLESS.encode()

    run = run_alone(
        struct.pack(f">?II{len(program)}sI1s", False, len(program), 1, program, 1, b"1"), 0
    )

    assert run.returncode == -signal.SIGXCPU
