"""A project of Django with tasks. Django can be set up only once in a process."""

import os

import django
from django import conf


def set_up() -> None:
    """Set Django up with this project, on a database of this process."""
    if conf.settings.configured:
        return
    os.environ[conf.ENVIRONMENT_VARIABLE] = "contrib.sample.settings"
    django.setup()
    # What other tests start from this process is no program of this project.
    del os.environ[conf.ENVIRONMENT_VARIABLE]
