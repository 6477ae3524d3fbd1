"""The service of this room that runs while the server does."""

from zq.features.sweeps.service import Sweeps

RUNNING = (Sweeps,)
