"""The list of jobs in Django's admin: a page that reads from the server."""

from typing import Any

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.template.response import TemplateResponse

from zq.client.backend import run
from zq.client.errors import ZqError
from zq.client.values import JobQuery
from zq.contrib.django.backend import ZqBackend
from zq.contrib.django.framework import task_backends
from zq.contrib.django.models import ShownJob
from zq.contrib.django.results import moment_of

NEWEST = 50
"""How many jobs of each backend are shown."""

STATUSES = ("ready", "scheduled", "in_flight", "completed", "dead", "cancelled", "expired")


@admin.register(ShownJob)
class ShownJobAdmin(admin.ModelAdmin):
    """The newest jobs of each backend of zq, for those who may view jobs."""

    def changelist_view(self, request: Any, extra_context: dict[str, Any] | None = None) -> Any:
        """The page. `?status=dead` shows dead jobs only."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        status = request.GET.get("status")
        aliases = [each for each in task_backends.settings if _is_ours(each)]
        context = {
            **self.admin_site.each_context(request),
            "title": "Jobs",
            "opts": self.opts,
            "statuses": STATUSES,
            "status": status if status in STATUSES else None,
            "backends": [_shown(alias, status) for alias in aliases],
            **(extra_context or {}),
        }
        return TemplateResponse(request, "admin/zq/shownjob/change_list.html", context)

    def has_add_permission(self, request: Any) -> bool:
        """Tasks are enqueued by programs."""
        return False

    def has_change_permission(self, request: Any, obj: Any = None) -> bool:
        """The page only shows."""
        return False

    def has_delete_permission(self, request: Any, obj: Any = None) -> bool:
        """The page only shows."""
        return False


def _is_ours(alias: str) -> bool:
    return isinstance(task_backends[alias], ZqBackend)


def _shown(alias: str, status: str | None) -> dict[str, Any]:
    """A backend with its newest jobs, or with the reason why there are none."""
    backend = task_backends[alias]
    query = JobQuery(
        statuses=(status,) if status in STATUSES else (),  # type: ignore[arg-type]
        queues=tuple(sorted(backend.queues)),
    )
    try:
        page = run(backend.app.backend.blocking.jobs(query, limit=NEWEST, newest=True))
    except ZqError as error:
        return {"alias": alias, "error": error.message}
    jobs = [{"job": job, "created": moment_of(job.created_at)} for job in page.jobs]
    return {"alias": alias, "jobs": jobs}
