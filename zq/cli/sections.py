"""The sections of `zq --help`. A room's `cli.py` puts its commands under them, as `COMMANDS`."""

from enum import StrEnum


class Section(StrEnum):
    """The title of a section: what people do with the commands in it."""

    RUN = "Run"
    LOOK = "Look"
    JOBS = "Jobs"
    QUEUES = "Queues"
    LOOK_BACK = "Look back"
    REPAIR = "Back up and repair"
    ACCESS = "Access"
