"""The service of this room that runs while the server does."""

from zq.features.batches.service import BatchPlanner

RUNNING = (BatchPlanner,)
