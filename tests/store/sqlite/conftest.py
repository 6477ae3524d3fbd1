"""These tests run for SQLite only."""

import pytest


@pytest.fixture
def store_kind() -> str:
    return "sqlite"
