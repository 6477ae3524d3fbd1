"""The name under which Django's admin and its permissions know the jobs. It has no table."""

from django.db import models


class ShownJob(models.Model):
    """A job of a server. Whoever may view it sees the list of jobs in the admin."""

    id = models.CharField(max_length=64, primary_key=True)

    class Meta:
        managed = False
        default_permissions = ("view",)
        verbose_name = "job"
        verbose_name_plural = "jobs"
