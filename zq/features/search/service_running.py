"""The service of this room that runs while the server does."""

from zq.features.search.service import Searches

RUNNING = (Searches,)
