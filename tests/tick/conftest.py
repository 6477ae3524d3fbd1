"""The stores of `tests/store`, for the tests of the tick."""

from store.conftest import rig, store_kind, ticker

__all__ = ["rig", "store_kind", "ticker"]
