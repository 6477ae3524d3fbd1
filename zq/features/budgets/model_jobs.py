"""What jobs draw from budgets."""

from zq.features.budgets.model import Draws
from zq.model.job import JobSettings


def draws_in(options: JobSettings | None) -> Draws | None:
    """The draws of a job with these options; None if it draws from no budget."""
    if options is None:
        return None
    draws: Draws | None = options.budgets  # type: ignore[attr-defined]
    return draws


def drawing(draws: Draws) -> JobSettings:
    """The options of a job that only draws from budgets."""
    return JobSettings(budgets=draws)  # type: ignore[call-arg]
