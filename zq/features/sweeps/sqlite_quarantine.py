"""The form of a text in rows of sweeps."""

from zq.features.sweeps.model import SweepOutline

FORMS = {"sweeps": {"outline": SweepOutline}}
