"""A project of Django with tasks. Django can be set up only once in a process."""

import os

import django


def set_up() -> None:
    """Set Django up with this project, on a database of this process."""
    os.environ["DJANGO_SETTINGS_MODULE"] = "contrib.sample.settings"
    django.setup()
