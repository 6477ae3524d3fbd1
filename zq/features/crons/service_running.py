"""The service of this room that runs while the server does."""

from zq.features.crons.service import Crons

RUNNING = (Crons,)
