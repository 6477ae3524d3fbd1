"""The option by which a job is for a device, for the commands that make jobs."""

import click

from zq.cli.rooms import JobOption

_TO = click.option(
    "--to", metavar="DEVICE", help="The device that gets the job. No worker of this server does."
)

OPTIONS = (JobOption("to", _TO, lambda given: given),)
