"""The service of this room that runs while the server does."""

from zq.features.archive.service_cleaning import Cleaning

RUNNING = (Cleaning,)
