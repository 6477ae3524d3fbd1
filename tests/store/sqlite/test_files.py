"""The modes of the store's files."""

import os
from pathlib import Path

import pytest

from zq.store.sqlite.files import create_private


@pytest.mark.parametrize("umask", [0, 0o777], ids=["none", "all"])
def test_a_copy_is_its_owners_alone_whatever_the_umask_of_an_embedding_program(
    tmp_path: Path, umask: int
) -> None:
    previous = os.umask(umask)
    try:
        create_private(tmp_path / "copy").close()
    finally:
        os.umask(previous)
    assert (tmp_path / "copy").stat().st_mode & 0o777 == 0o600
