"""`zq keys` as users and scripts run it."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from zq import keyfile
from zq.cli.group import main
from zq.model.keys import digest_of


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The key file that the variable names."""
    path = tmp_path / "keys"
    monkeypatch.setenv("ZQ_KEYS", str(path))
    return path


def keys(*arguments: str) -> str:
    result = CliRunner().invoke(main, ["keys", *arguments])
    assert result.exit_code == 0, result.output
    return result.output


def refused(*arguments: str) -> str:
    result = CliRunner().invoke(main, ["keys", *arguments])
    assert result.exit_code in (1, 2)
    return result.output


def test_the_secret_is_printed_once_and_only_its_hash_is_kept(path: Path) -> None:
    output = keys("add", "shop", "--scopes", "enqueue,read", "--prefix", "shop-, orders-")

    secret = output.splitlines()[0]
    assert len(secret) >= 43, "256 bits"
    assert output.count(secret) == 1
    assert "SIGHUP" in output
    assert secret not in path.read_text()
    key = keyfile.read(path).with_secret(secret.encode())
    assert key is not None
    assert (key.name, sorted(key.scopes)) == ("shop", ["enqueue", "read"])
    assert key.reach.prefixes == ("orders-", "shop-")


def test_two_keys_have_two_secrets(path: Path) -> None:
    assert keys("add", "a", "--scopes", "read") != keys("add", "b", "--scopes", "read")


def test_a_key_for_a_certificate_has_no_secret(path: Path) -> None:
    output = keys("add", "worker", "--scopes", "take", "--certificate")

    assert "CN=worker" in output
    assert path.read_text() == "worker - take\n"


def test_the_list_shows_all_but_secrets(path: Path) -> None:
    secret = keys("add", "shop", "--scopes", "enqueue", "--prefix", "shop-").splitlines()[0]
    keys("add", "worker", "--scopes", "take", "--certificate")

    output = keys("list")

    assert [line.split() for line in output.splitlines()] == [
        ["NAME", "SCOPES", "QUEUES", "BY"],
        ["shop", "enqueue", "shop-*", "secret"],
        ["worker", "take", "all", "certificate"],
    ]
    assert digest_of(secret.encode()).hex() not in output


def test_scripts_get_json(path: Path) -> None:
    shop = {
        "name": "shop",
        "scopes": ["enqueue", "manage"],
        "prefixes": ["shop-"],
        "budgets": 9,
        "certificate_only": False,
    }
    scopes = ("--scopes", "manage,enqueue", "--prefix", "shop-", "--budgets", "9")
    added: Any = json.loads(keys("add", "shop", *scopes, "--json"))

    secret = added.pop("secret")
    assert added == shop
    assert keyfile.read(path).with_secret(secret.encode()) is not None
    assert json.loads(keys("list", "--json")) == [shop]
    assert json.loads(keys("revoke", "shop", "--json")) == {"revoked": "shop"}
    assert json.loads(keys("list", "--json")) == []


def test_a_revoked_key_is_gone(path: Path) -> None:
    keys("add", "a", "--scopes", "read")
    keys("add", "b", "--scopes", "read")

    assert "SIGHUP" in keys("revoke", "a")

    assert [key.name for key in keyfile.read(path).keys] == ["b"]


def test_the_flag_goes_before_the_variable(path: Path, tmp_path: Path) -> None:
    keys("add", "a", "--scopes", "read", "--keys", str(tmp_path / "other"))

    assert not path.exists()
    assert [key.name for key in keyfile.read(tmp_path / "other").keys] == ["a"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["add", "a"], "--scopes"),
        (["add", "a b", "--scopes", "read"], "cannot be a key's name"),
        (["add", "b", "--scopes", "all"], "unknown scope 'all'"),
        (["add", "b", "--scopes", "read", "--prefix", ""], "the list is empty"),
        (["add", "a", "--scopes", "read"], "'a' already"),
        (["revoke", "b"], "zq keys list"),
    ],
)
def test_what_is_wrong_is_said_and_changes_nothing(
    path: Path, arguments: list[str], says: str
) -> None:
    path.write_text("a - read\n")

    assert says in refused(*arguments)

    assert path.read_text() == "a - read\n"


def test_without_a_file_named_both_ways_to_name_it_are_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("ZQ_KEYS", raising=False)
    monkeypatch.delenv("ZIZQ_KEYS", raising=False)

    output = refused("list")

    assert "--keys" in output
    assert "ZQ_KEYS" in output


def test_help_shows_examples() -> None:
    for arguments in (["--help"], ["add", "--help"]):
        assert "Examples:" in keys(*arguments)
