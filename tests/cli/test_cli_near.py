"""Mistyped names: of queues that do not exist, of settings, of variables."""

import pytest
from click.testing import CliRunner

from zq.cli.group import main
from zq.model.names import near
from zq.model.settings import QueueSettings

from .shell import Shell

CHANGES = (
    ("pause", "mial"),
    ("settings", "mial", "concurrency=5"),
    ("schema", "mial", "--set", "letter.avsc"),
    ("change", "ID", "--queue", "mial"),
)


@pytest.mark.parametrize("words", CHANGES, ids=[words[0] for words in CHANGES])
async def test_a_queue_that_does_not_exist_is_changed_on_request_alone(
    shell: Shell, words: tuple[str, ...]
) -> None:
    (job,) = await shell.push("hello")
    schema = '{"type": "record", "name": "L", "fields": []}'
    (shell.directory / "letter.avsc").write_text(schema)
    words = tuple(job.id if word == "ID" else word for word in words)
    refused = await shell.zq(*words)
    assert (refused.code, refused.output) == (1, "")
    assert "no such queue yet: mial; did you mean mail? Give --create" in refused.errors
    assert await shell.backend.settings("mial") == QueueSettings()
    assert (await shell.backend.get(job.id)).queue == "mail"
    assert (await shell.zq(*words, "--create")).code == 0


async def test_a_queue_with_settings_alone_exists(shell: Shell) -> None:
    assert (await shell.zq("settings", "new", "rate=5", "--create")).code == 0
    assert (await shell.zq("settings", "new", "rate=6")).code == 0
    assert (await shell.zq("pause", "new")).code == 0


@pytest.mark.parametrize(
    "words",
    [
        ("jobs", "--queue", "mial"),
        ("dead", "--queue", "mial"),
        ("queues", "mial"),
        ("settings", "mial"),
        ("resume", "mial"),
        ("requeue", "--queue", "mial", "--yes"),
        ("cron", "add", "g", "e", "0 3 * * *", "mial"),
    ],
    ids=" ".join,
)
async def test_who_reads_of_a_queue_that_does_not_exist_is_told(
    shell: Shell, words: tuple[str, ...]
) -> None:
    await shell.push("hello")
    said = await shell.zq(*words)
    assert said.code == 0
    assert said.errors.startswith("no such queue yet: mial; did you mean mail?")


async def test_a_setting_that_does_not_exist_is_named_with_the_near_one(shell: Shell) -> None:
    await shell.push("hello")
    said = await shell.zq("settings", "mail", "concurency=5")
    assert (said.code, "'concurency'; did you mean concurrency?" in said.errors) == (2, True)
    said = await shell.zq("settings", "mail", "zzz=5")
    assert (said.code, "there are backoff, concurrency" in said.errors) == (2, True)


def test_a_mistyped_variable_is_named() -> None:
    env = {"ZQ_URL": "http://127.0.0.1:1", "ZQ_TOKNE": "x", "ZQ_OF_SOMEBODY": "x"}
    said = CliRunner().invoke(main, ["jobs"], env=env)
    assert said.stderr.startswith("zq does not read ZQ_TOKNE; did you mean ZQ_TOKEN?\n")
    assert "SOMEBODY" not in said.stderr


def test_what_is_like_nothing_has_nothing_near() -> None:
    assert near("mial", ["mail", "sums"]) == ["mail"]
    assert near("MAIL", ["mail"]) == ["mail"]
    assert near("x", ["mail", "sums"]) == []
