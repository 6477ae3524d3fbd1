"""The stores of `tests/store`, for the tests of lanes."""

from store.conftest import ticker

__all__ = ["ticker"]
