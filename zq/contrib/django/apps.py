"""The application for INSTALLED_APPS."""

from django.apps import AppConfig


class ZqConfig(AppConfig):
    """Brings the command, the outbox's table, and the list of jobs in the admin."""

    name = "zq.contrib.django"
    label = "zq"
    verbose_name = "zq"
    default_auto_field = "django.db.models.BigAutoField"
