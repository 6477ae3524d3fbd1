"""`zq fair`, and the options by which jobs have a fair key."""

import json

import pytest

from .shell import Shell


async def test_a_pushed_job_has_its_key_and_weight(shell: Shell) -> None:
    said = await shell.zq("push", "q", "1", "--fair-key", "acme", "--fair-weight", "2.5", "--json")
    document = json.loads(said.output)
    assert (document["fair_key"], document["fair_weight"]) == ("acme", 2.5)


async def test_keys_are_listed_set_and_unset(shell: Shell) -> None:
    for key in ("acme", "acme", "tiny"):
        await shell.zq("push", "q", "1", "--fair-key", key)

    put = await shell.zq("fair", "set", "q", "acme", "--weight", "3", "--max-in-flight", "20")
    assert (put.code, put.output) == (0, "acme of q has weight 3, at most 20 in flight\n")
    listed = await shell.zq("fair", "list", "q", "--order", "depth", "--json")
    documents = [json.loads(line) for line in listed.output.splitlines()]
    assert [(each["key"], each["waiting"], each["share"]) for each in documents] == [
        ("acme", 2, 0.75),
        ("tiny", 1, 0.25),
    ]
    table = await shell.zq("fair", "list", "q", "--limit", "1")
    assert "BEHIND" in table.output and "1 of 2 keys" in table.errors
    gone = await shell.zq("fair", "unset", "q", "acme")
    assert (gone.code, gone.output) == (0, "nothing is set for acme of q any more\n")
    missing = await shell.zq("fair", "unset", "q", "acme")
    assert missing.code == 1 and "'acme'" in missing.errors


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (("fair", "set", "q", "acme"), "say what to set"),
        (("fair", "set", "q", "acme", "--weight", "0"), "0.01<=x<=100"),
        (("push", "q", "1", "--fair-weight", "101"), "0.01<=x<=100"),
        (("fair", "list", "q", "--order", "name"), "'share', 'wait', 'depth'"),
    ],
)
async def test_what_cannot_be_is_wrong_usage(
    shell: Shell, words: tuple[str, ...], named: str
) -> None:
    said = await shell.zq(*words)
    assert said.code == 2 and named in said.errors
