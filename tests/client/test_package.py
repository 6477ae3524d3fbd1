"""The package `zq`: what it names, and what is imported with it."""

import subprocess
import sys
from types import FunctionType
from typing import Any

import pytest
from conformance.streams import PATIENCE_S

import zq


def test_a_plain_script_needs_no_event_loop(tmp_path: Any) -> None:
    script = (
        "import sys, zq\n"
        "with zq.App(sys.argv[1]) as app:\n"
        "    try:\n"
        "        app.queue('q').sync.enqueue('a', 1)\n"
        "    except zq.Unavailable as error:\n"
        "        print(error.code)\n"
        "print(sorted(m for m in sys.modules if m == 'aiohttp' or m.startswith(\n"
        "    ('zq.http', 'zq.engine', 'zq.store', 'zq.runtime', 'aiosqlite', 'sqlite3', 'h2'))))\n"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", script, "http://127.0.0.1:1"],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    assert (done.stdout, done.stderr) == ("unreachable\n[]\n", "")


def test_the_package_imports_nothing_until_something_is_named() -> None:
    script = (
        "import sys, zq; print([m for m in sys.modules if m.startswith('zq.') or m == 'msgspec'])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout == "[]\n"


def test_what_uses_the_library_imports_no_server() -> None:
    script = (
        "import sys, zq, zq.client.worker.worker, zq.client.http.aio, aiohttp\n"
        "[getattr(zq, name) for name in dir(zq)]\n"
        "print(sorted(m for m in sys.modules if m.startswith(\n"
        "    ('zq.http', 'zq.engine', 'zq.store', 'zq.runtime', 'zq.cli.', 'h2', 'jq',\n"
        "     'zq.config', 'aiosqlite', 'prometheus_client', 'click', 'ulid', 'pydantic'))))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("[]\n", "")


def test_a_program_that_only_enqueues_imports_no_verbs_of_rooms() -> None:
    script = (
        "import sys, zq.client.http.backend\n"
        "print([m for m in sys.modules if m.startswith('zq.features.')\n"
        "       and m.endswith(('.verbs', '.client', '.answers'))])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("[]\n", "")


def test_each_public_class_and_function_says_what_it_is() -> None:
    named: dict[str, Any] = {}
    exec("from zq import *", named)
    ours = [each for each in named.values() if getattr(each, "__module__", "").startswith("zq.")]
    made = [each for each in ours if isinstance(each, type | FunctionType)]
    assert len(made) > 40
    # Editors show a parent's docstring for a class that has none.
    assert [each.__name__ for each in made if not each.__doc__] == []


def test_everything_that_the_package_names_is_there() -> None:
    for name in dir(zq):
        assert getattr(zq, name) is not None
    assert set(zq.errors.__all__) - {"refusal"} <= set(dir(zq))
    with pytest.raises(AttributeError, match="nothing_such"):
        zq.nothing_such  # noqa: B018
