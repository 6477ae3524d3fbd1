"""The words and variables of `zq worker`: what is wrong gives 2 and is named."""

import re
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from zq.cli.group import main
from zq.cli.worker import load


def invoke(*words: str, **variables: str) -> tuple[int, str]:
    result = CliRunner(env=variables).invoke(main, ["worker", *words])
    return result.exit_code, result.output


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ((), "MODULE:APP"),
        (("nothing_such:app",), "no module 'nothing_such'"),
        (("json:nothing_such",), "no 'nothing_such'"),
        (("json",), "no 'app'"),
        (("--package", "nowhere"), "nowhere: this folder does not exist"),
        (("json:dumps",), "is not a zq.App but a function"),
        (("json:dumps", "-c", "0"), "concurrency"),
        (("json:dumps", "--lease", "soon"), '"soon" is not a duration'),
        (("json:dumps", "--json-logs", "--log-format", "pretty"), "--json-logs or --log-format"),
    ],
)
def test_a_wrong_word_gives_2_and_says_what_is_wrong(
    words: tuple[str, ...], complaint: str
) -> None:
    code, output = invoke(*words)

    assert code == 2
    assert complaint in output


def test_what_reload_needs_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "watchfiles", None)

    code, output = invoke("json:dumps", "--reload")

    assert code == 2
    assert "pip install 'zq-queue[reload]'" in output


@pytest.mark.parametrize(
    ("module", "name", "said"),
    [
        ("empty_app", "app", "no tasks"),
        ("other_app", "queue", "the module 'other_app' has no 'app': it has queue"),
    ],
)
def test_an_app_without_tasks_or_of_another_name_is_a_mistake(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: str, name: str, said: str
) -> None:
    (tmp_path / f"{module}.py").write_text(f"import zq\n{name} = zq.App()\n")
    monkeypatch.syspath_prepend(tmp_path)

    code, output = invoke(module)

    assert code == 2
    assert said in output


def test_a_mistake_in_the_module_of_the_app_is_shown_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = ("import zq", "app = zq.App()", "app.task(print).delay(1)")
    (tmp_path / "hasty_app.py").write_text("\n".join(lines))
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(AttributeError, match="a task has no 'delay': call enqueue_sync"):
        load("hasty_app")


def test_every_flag_has_a_variable() -> None:
    code, output = invoke("json:dumps", ZQ_WORKER_CONCURRENCY="0")
    assert code == 2
    assert "concurrency" in output
    _, help = invoke("--help")
    for flag in set(re.findall(r"--([a-z-]+)", help)) - {"concurrency", "help"}:
        assert "ZQ_WORKER_" + flag.replace("-", "_").upper() in help.replace("\n", "")


def test_a_broken_address_in_a_variable_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "broken_address.py").write_text("import zq\napp = zq.App()\n")
    monkeypatch.syspath_prepend(tmp_path)
    result = CliRunner().invoke(main, ["worker", "broken_address"], env={"ZQ_URL": "here:7890"})
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1)
    assert "broken_address: 'here:7890' is not an address" in result.stderr


@pytest.mark.parametrize(
    ("spec", "right"),
    [
        ("shop.py", "shop:app"),
        ("./shop.py:queue", "shop:queue"),
        ("shop/jobs", "shop.jobs:app"),
        ("shop.app", "shop:app"),
    ],
)
def test_a_module_that_is_written_otherwise_is_told_what_to_write(spec: str, right: str) -> None:
    result = CliRunner().invoke(main, ["worker", spec])
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1)
    assert f": write {right}. See" in result.stderr
