"""Zizq's objects as bodies of ours have them: with no field that nobody knows.

Zizq passes over such fields, and its routes do so here; elsewhere a misspelt name is told.
"""

from zq.model.job import BackoffRule, Retention
from zq.model.patching import RetentionPatch


class StrictBackoff(BackoffRule, frozen=True, forbid_unknown_fields=True):
    """How long a failed job waits, in milliseconds."""


class StrictRetention(Retention, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """How long a finished job is kept, in milliseconds."""

    def plain(self) -> Retention:
        """The same as the rest of the program has it."""
        return Retention(self.completed_ms, self.dead_ms)


class StrictRetentionPatch(RetentionPatch, frozen=True, forbid_unknown_fields=True):
    """A change of that: per field, absent keeps, null removes, a number sets."""
