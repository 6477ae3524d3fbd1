"""Commands on data directories, where somebody gives them the address of a database."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from zq.cli.group import main
from zq.config import Settings
from zq.setting import ConfigError

ADDRESS = "postgresql://zq@/queue"


@pytest.mark.parametrize(
    ("words", "instead"),
    [
        (["check", "--root-dir", ADDRESS], "pg_amcheck"),
        (["check", "--store", ADDRESS], "pg_verifybackup"),
        (["restore", "-", "--root-dir", ADDRESS], "pg_restore"),
        (["restore", "-", "--store", ADDRESS], "zq move"),
        (["salvage", ADDRESS, "new"], "pg_dump"),
        (["tls", "ca", "--root-dir", ADDRESS], "--out-dir"),
        (["--root-dir", ADDRESS, "tls", "init", "--san", "localhost"], "--out-dir"),
        (["tls", "server-cert", "--out-dir", ADDRESS], "--out-dir"),
        (["tls", "client-cert", "--name", "c", "--root-dir", ADDRESS], "--out-dir"),
    ],
    ids=" ".join,
)
def test_a_command_says_what_postgresql_has_instead(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], instead: str
) -> None:
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(main, words)
    assert result.exit_code == 2
    assert "not for PostgreSQL: " in result.output
    assert instead in result.output
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("words", [["check"], ["restore", "-"]], ids=" ".join)
def test_a_database_that_the_environment_names_is_refused_unless_a_directory_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ZQ_STORE", ADDRESS)
    refused = CliRunner().invoke(main, words)
    assert refused.exit_code == 2 and "PostgreSQL, which ZQ_STORE names" in refused.output
    for named in (["--root-dir", "other", *words], [*words, "--root-dir", "other"]):
        assert "PostgreSQL" not in CliRunner().invoke(main, named).output


@pytest.mark.parametrize("variable", ["ZQ_ROOT_DIR", "ZIZQ_ROOT_DIR"])
def test_a_check_looks_at_the_directory_that_the_environment_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(variable, "other")
    assert "other/zq.db does not exist" in CliRunner().invoke(main, ["check"]).output


def test_what_is_salvaged_goes_to_no_address(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "zq.db").touch()
    result = CliRunner().invoke(main, ["salvage", str(tmp_path), ADDRESS])
    assert result.exit_code == 2
    assert "not for PostgreSQL: " in result.output
    assert [each.name for each in tmp_path.iterdir()] == ["zq.db"]


def test_an_address_is_no_data_directory() -> None:
    with pytest.raises(ConfigError, match="give it by --store"):
        Settings(root_dir=Path(ADDRESS))
