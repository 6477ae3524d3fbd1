"""The service of this room that runs while the server does."""

from zq.features.schemas.service import Schemas

RUNNING = (Schemas,)
