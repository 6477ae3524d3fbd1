"""`zq settings` and `zq schema`: what is set for a queue."""

import json

import pytest

from .shell import Shell


async def test_settings_are_changed_shown_and_left_to_the_server_again(shell: Shell) -> None:
    said = await shell.zq(
        "settings", "mail", "concurrency=5", "dead_letter=lost", "paused=true", "--create"
    )
    assert (said.code, said.output) == (0, "paused  true\nconcurrency  5\ndead_letter  lost\n")
    words = ('retention={"completed_ms": 3600000}', "dead_letter=null", "paused=null")
    (changed,) = (await shell.zq("settings", "mail", *words, "--json")).documents
    assert changed == {"concurrency": 5, "retention": {"completed_ms": 3_600_000}}
    shown = (await shell.zq("settings", "mail")).output
    assert shown == 'concurrency  5\nretention  {"completed_ms":3600000}\n'
    said = await shell.zq("settings", "other")
    assert (said.code, said.output) == (0, "other has no settings of its own\n")


@pytest.mark.parametrize(
    ("words", "code", "wrong"),
    [
        (("rate",), 2, "has no value: write rate=VALUE, or rate=null"),
        (("rat=5",), 2, "no setting 'rat'; did you mean rate?"),
        (("concurrency=0",), 2, "concurrency must be a whole number of at least 1, not 0"),
        (("rate=fast",), 2, 'rate must be a number, not "fast" (null leaves it to the server)'),
        (("fan_out=[1]",), 2, "fan_out[0] must be a text"),
        (('retention={"completed": 5}',), 2, "did you mean 'completed_ms'?"),
        (("lease_ms=5x",), 2, '"5x" is not a duration'),
        (("rate=" + "[" * 5000,), 2, "rate must be a number"),
    ],
)
async def test_what_is_no_setting_is_refused(
    shell: Shell, words: tuple[str, ...], code: int, wrong: str
) -> None:
    said = await shell.zq("settings", "mail", *words)
    assert said.code == code
    assert wrong in " ".join(said.errors.split())
    assert (await shell.zq("settings", "mail", "--json")).documents == [{}]


async def test_a_time_of_a_setting_is_a_duration(shell: Shell) -> None:
    said = await shell.zq("settings", "mail", "lease_ms=90s", "ttl_ms=60000", "--create")
    assert said.output == "ttl_ms  60000\nlease_ms  90000\n"


async def test_a_schema_is_set_shown_and_removed(shell: Shell) -> None:
    avro = {"type": "record", "name": "Letter", "fields": [{"name": "to", "type": "string"}]}
    said = await shell.zq("schema", "mail", "--create", "--set", "-", stdin=json.dumps(avro))
    assert (said.code, said.output) == (0, "new jobs of mail have to match version 1\n")
    assert json.loads((await shell.zq("schema", "mail")).output) == avro
    (shown,) = (await shell.zq("schema", "mail", "--json")).documents
    assert (shown["queue"], shown["schema"], shown["version"]) == ("mail", avro, 1)
    said = await shell.zq("push", "mail", '{"to": 1}')
    assert said.code == 1
    assert (await shell.zq("schema", "mail", "--remove")).code == 0
    assert (await shell.zq("push", "mail", '{"to": 1}')).code == 0
    assert (await shell.zq("schema", "mail")).code == 1


async def test_what_is_no_schema_is_refused(shell: Shell) -> None:
    for text, code in (("{", 2), (b'"\xff"', 2), ("[" * 5000, 2), ('{"type": "nothing"}', 1)):
        assert (await shell.zq("schema", "mail", "--create", "--set", "-", stdin=text)).code == code
    both = await shell.zq("schema", "mail", "--set", "-", "--remove", stdin="{}")
    assert (both.code, "not both" in both.errors) == (2, True)
