"""The metrics of budgets."""

from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

from zq.features.budgets.service import Budgets
from zq.http.api.parts import ApiParts
from zq.http.metrics import REST, LabelledNames, Metric, Scrape, Values, one

MOST_BUDGETS = 100
"""How many budgets have a label of their own. The cost of a scrape must not grow with them."""


class BudgetFigures(NamedTuple):
    """Budgets, and the jobs that draw from them."""

    budgets: int
    waiting: Mapping[str, int]
    """Ready jobs that draw from a budget. `REST` stands for all budgets without a label."""
    tokens: Mapping[str, int]
    """The available tokens of the budgets that have a label."""


class BudgetReader:
    """Reads them. A budget with a label keeps it as long as it exists."""

    def __init__(self, parts: ApiParts) -> None:
        self._budgets = parts.services[Budgets]
        self._labels = LabelledNames(MOST_BUDGETS)

    async def read(self) -> BudgetFigures:
        """The budgets of this moment. Raises `ReadTimeout`."""
        budgets = await self._budgets.all()
        named = set(self._labels.of({budget.key: budget.waiting for budget in budgets}))
        waiting: Counter[str] = Counter()
        for budget in budgets:
            waiting[budget.key if budget.key in named else REST] += budget.waiting
        tokens = {budget.key: budget.available for budget in budgets if budget.key in named}
        return BudgetFigures(len(budgets), waiting, tokens)


def _waiting(scrape: Scrape) -> Values:
    return [((key,), n) for key, n in scrape[BudgetFigures].waiting.items()]


def _tokens(scrape: Scrape) -> Values:
    return [((key,), n) for key, n in scrape[BudgetFigures].tokens.items()]


READERS = (BudgetReader,)

METRICS = (
    Metric(
        "zq_budgets",
        "gauge",
        "Budgets (`--max-budgets`).",
        lambda s: one(s[BudgetFigures].budgets),
    ),
    Metric(
        "zq_budget_waiting_jobs",
        "gauge",
        "Ready jobs that draw from a budget, each counted with all its budgets. At most"
        f" {MOST_BUDGETS} budgets by name, the rest together as `{REST}`.",
        _waiting,
        ("budget",),
    ),
    Metric(
        "zq_budget_available_tokens",
        "gauge",
        "Tokens of the budgets that are named in `zq_budget_waiting_jobs`.",
        _tokens,
        ("budget",),
    ),
)
