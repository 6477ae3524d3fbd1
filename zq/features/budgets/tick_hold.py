"""The ledger of budgets as the tick knows it: a hold, by which jobs wait until they are paid."""

from collections import Counter
from collections.abc import Sequence

import msgspec

from zq.features.budgets.model import Draws
from zq.features.budgets.model_jobs import draws_in
from zq.features.budgets.tick_changes import create_missing, refuse_gone, refuse_unpayable
from zq.features.budgets.tick_ledger import TokenLedger
from zq.model.errors import Unprocessable
from zq.model.job import JobRecord, JobSettings, NewJob
from zq.model.reach import BudgetMaker
from zq.store.api import Line
from zq.tick.work import UnitOfWork

_draws = msgspec.json.Decoder(Draws).decode


class BudgetHold(TokenLedger):
    """Holds jobs that draw from budgets. It follows `zq.tick.hooks.Hold`."""

    def holds(self, options: JobSettings | None) -> bool:
        """True if jobs with these options draw from budgets."""
        return draws_in(options) is not None

    def refuse_new(
        self, jobs: Sequence[NewJob], maker: BudgetMaker | None, place: str
    ) -> Unprocessable | None:
        """Why new jobs cannot be stored: a budget is missing, or could never pay one of them."""
        return refuse_unpayable(self, jobs, maker, place)

    def admit_new(
        self, work: UnitOfWork, jobs: Sequence[NewJob], maker: BudgetMaker | None
    ) -> None:
        """Create the budgets that new jobs bring, if they do not exist."""
        create_missing(work, jobs, maker)

    def refuse_return(self, jobs: Sequence[JobRecord]) -> Unprocessable | None:
        """Why finished jobs cannot come back: one of their budgets was deleted or narrowed."""
        return refuse_gone(self, jobs)

    def review(self, queue: str) -> None:
        """No budget depends on the settings of a queue."""

    def till(self, work: UnitOfWork) -> "TokenTill":
        """Begin to calculate what a claim may take."""
        return TokenTill(self)


class TokenTill:
    """Pays for jobs with the tokens that there are now. It follows `zq.tick.hooks.Till`."""

    def __init__(self, ledger: TokenLedger) -> None:
        self._ledger = ledger
        self._spent: Counter[str] = Counter()
        self._draws: dict[str, Draws] = {}

    def refuses(self, line: Line) -> tuple[str, int] | None:
        """The first budget that cannot pay for a job of a line, and the cost."""
        if not line.draws:
            return None
        draws = self._draws_of(line)
        for draw in draws:
            left = self._ledger.available(draw.key) - self._spent[draw.key]
            if left < draw.cost:
                self._ledger.refuse(draws, draw, left)
                return draw.key, draw.cost
        return None

    def learn(self, lines: Sequence[Line]) -> None:
        """It needs nothing."""

    def place_of(self, line: Line) -> float | None:
        """Budgets have no places."""
        return None

    def pay(self, line: Line) -> None:
        """Pay for one job of a line."""
        for draw in self._draws_of(line) if line.draws else ():
            self._spent[draw.key] += draw.cost

    def _draws_of(self, line: Line) -> Draws:
        draws = self._draws.get(line.draws)
        if draws is None:
            draws = self._draws[line.draws] = _draws(line.draws)
        return draws
