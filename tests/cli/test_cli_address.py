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


def test_an_address_is_no_data_directory() -> None:
    with pytest.raises(ConfigError, match="give it by --store"):
        Settings(root_dir=Path(ADDRESS))
