"""Libraries to be preloaded, compiled once a run."""

from pathlib import Path

import pytest

from .disk import Disk, compile_library, new_disk


@pytest.fixture(scope="session")
def disk_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_library(tmp_path_factory.mktemp("disk"), "disk")


@pytest.fixture
def disk(disk_library: Path, tmp_path: Path) -> Disk:
    return new_disk(disk_library, tmp_path)
