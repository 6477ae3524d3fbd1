"""A project of Django with tasks. Django can be set up only once in a process."""

import os

import django
from django.conf import ENVIRONMENT_VARIABLE, settings


def set_up() -> None:
    """Set Django up with this project, on a database of this process."""
    if settings.configured:
        return
    os.environ[ENVIRONMENT_VARIABLE] = "contrib.sample.settings"
    django.setup()
    # What other tests start from this process is no program of this project.
    del os.environ[ENVIRONMENT_VARIABLE]
