"""The interface of a store, and the stores that implement it."""
