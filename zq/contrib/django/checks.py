"""System checks of the settings of a backend: `manage.py check` shows them."""

from collections.abc import Iterator, Mapping
from typing import Any

from django.apps import apps
from django.conf import settings
from django.core import checks
from django.db import connections

from zq.client.connect import connect
from zq.client.errors import InvalidOption
from zq.client.options import check
from zq.contrib.django.outbox import VENDORS

SETTINGS = ("BACKEND", "QUEUES", "ENQUEUE_ON_COMMIT", "OPTIONS")
OPTIONS = ("url", "token", "job", "database", "periodic", "setup")


def settings_messages(
    alias: str, options: Mapping[str, Any], database: str, on_commit: bool
) -> Iterator[checks.CheckMessage]:
    """The faults of this backend's settings, as messages."""
    where = f"TASKS[{alias!r}]"
    for name in sorted(set(settings.TASKS[alias]) - set(SETTINGS)):
        # Django passes over it, and a transaction is none of the outbox's without a word.
        known = f"zq knows {', '.join(SETTINGS)}."
        yield checks.Warning(f"{where} has {name!r}, which does nothing.", hint=known, id="zq.W007")
    for name in sorted(set(options) - set(OPTIONS)):
        known = f"The options are {', '.join(OPTIONS)}."
        yield checks.Error(f"{where} has an unknown option {name!r}.", hint=known, id="zq.E001")
    try:
        connect(options.get("url"), options.get("token"))
    except InvalidOption as error:
        yield checks.Error(f"{where} has no valid url or token: {error.message}.", id="zq.E002")
    try:
        job = options.get("job", {})
        check(job)
        if taken := {"key", "batch", "dedupe", "priority", "delay", "run_at"} & set(job):
            raise InvalidOption(f"{', '.join(sorted(taken))}: the framework sets this")
    except InvalidOption as error:
        yield checks.Error(f"{where} has an invalid job option: {error.message}.", id="zq.E003")
    if on_commit:
        yield from _outbox_messages(where, database)


def _outbox_messages(where: str, database: str) -> Iterator[checks.CheckMessage]:
    if database not in connections.settings:
        said = f"{where} names the database {database!r}, which DATABASES does not have."
        yield checks.Error(said, id="zq.E004")
    elif connections[database].vendor not in VENDORS:
        vendor = connections[database].vendor
        said = f"{where} has ENQUEUE_ON_COMMIT, but its database is {vendor}."
        hint = "The outbox is for SQLite and PostgreSQL."
        yield checks.Error(said, hint=hint, id="zq.E005")
    if not apps.is_installed("zq.contrib.django"):
        said = f"{where} has ENQUEUE_ON_COMMIT, but nothing makes the outbox's table."
        hint = "Add 'zq.contrib.django' to INSTALLED_APPS, and run manage.py migrate."
        yield checks.Error(said, hint=hint, id="zq.E006")
