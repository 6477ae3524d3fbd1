"""The outbox's table, where the database can have one, and the name of the list of jobs."""

from typing import Any, ClassVar

from django.db import migrations, models

from zq import outbox
from zq.contrib.django.outbox import VENDORS


def create_table(_: Any, schema_editor: Any) -> None:
    """Create the tables of the outbox if they do not exist."""
    if schema_editor.connection.vendor in VENDORS:
        outbox.create_table(schema_editor.connection)


class Migration(migrations.Migration):
    """The first state of the application."""

    initial = True
    dependencies: ClassVar[list[Any]] = []
    operations: ClassVar[list[Any]] = [
        migrations.RunPython(create_table, migrations.RunPython.noop),
        migrations.CreateModel(
            name="ShownJob",
            fields=[("id", models.CharField(max_length=64, primary_key=True, serialize=False))],
            options={
                "managed": False,
                "default_permissions": ("view",),
                "verbose_name": "job",
                "verbose_name_plural": "jobs",
            },
        ),
    ]
