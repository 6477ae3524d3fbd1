"""The tests of this folder are SQLite's alone."""

import pytest


@pytest.fixture
def store_kind() -> str:
    return "sqlite"
