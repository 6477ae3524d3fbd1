"""The options by which a job has a fair key, for the commands that make jobs."""

import click

from zq.cli.rooms import JobOption
from zq.features.fair.model import MAX_KEY, MAX_WEIGHT, MIN_WEIGHT

_KEY = click.option(
    "--fair-key",
    metavar="KEY",
    help="Workers share the queue fairly between keys: a tenant, for instance, of up to"
    f" {MAX_KEY} characters.",
)
_WEIGHT = click.option(
    "--fair-weight",
    type=click.FloatRange(MIN_WEIGHT, MAX_WEIGHT),
    help="How much of a share the key gets. [default: 1]",
)


OPTIONS = (
    JobOption("fair_key", _KEY, lambda given: given),
    JobOption("fair_weight", _WEIGHT, lambda given: given),
)
