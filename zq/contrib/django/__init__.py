"""A backend for Django's Tasks framework, and a worker as a command of manage.py.

``"BACKEND": "zq.contrib.django.ZqBackend"`` in the setting TASKS uses it. With
``"zq.contrib.django"`` in INSTALLED_APPS come `manage.py zq_worker`, the outbox's table, and a list
of jobs in Django's admin.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from zq.contrib.django.backend import ZqBackend as ZqBackend


def __getattr__(name: str) -> Any:
    # Django imports this package before its settings can be read.
    if name != "ZqBackend":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from zq.contrib.django.backend import ZqBackend

    return ZqBackend
