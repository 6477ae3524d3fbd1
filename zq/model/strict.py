"""Zizq's objects for zq's own bodies: unknown fields are refused.

Zizq ignores unknown fields, and its routes do so here too. Other routes report a misspelt name.
"""

from zq.model.job import BackoffRule, Retention
from zq.model.patching import RetentionPatch


class StrictBackoff(BackoffRule, frozen=True, forbid_unknown_fields=True):
    """How long a failed job waits, in milliseconds."""


class StrictRetention(Retention, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """How long a finished job is kept, in milliseconds."""

    def plain(self) -> Retention:
        """The retention as the model has it."""
        return Retention(self.completed_ms, self.dead_ms)


class StrictRetentionPatch(RetentionPatch, frozen=True, forbid_unknown_fields=True):
    """A change of retention. For each field: absent keeps, null removes, a number sets."""
