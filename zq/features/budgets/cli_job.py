"""The option by which a job draws from a budget, for the commands that make jobs."""

from typing import Any

import click

from zq.cli.rooms import JobOption
from zq.cli.words import NAME
from zq.features.budgets.model import MOST_TOKENS


class BudgetDraw(click.ParamType[tuple[str, int]]):
    """The key of a budget, and how many of its tokens a job needs: `crm` or `crm=2`."""

    name = "key[=cost]"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, int]:
        if isinstance(value, tuple):
            return value
        key, equals, cost = value.rpartition("=")
        if not equals:
            return NAME.convert(value, param, ctx), 1
        if not cost.isdecimal() or not 1 <= int(cost) <= MOST_TOKENS:
            self.fail(f"{cost!r} is no number of tokens from 1: write {key}=2", param, ctx)
        return NAME.convert(key, param, ctx), int(cost)


def _draws(given: tuple[tuple[str, int], ...]) -> tuple[Any, ...] | None:
    """The draws of a job in the form in which they are sent."""
    from zq.features.budgets.client_limits import Budget

    return tuple(Budget(key, cost).wire() for key, cost in given) or None


_BUDGET = click.option(
    "--budget",
    "budgets",
    type=BudgetDraw(),
    multiple=True,
    help="The job draws so many tokens, or one, from this budget. It may be repeated.",
)

OPTIONS = (JobOption(field="budgets", option=_BUDGET, sent=_draws),)
