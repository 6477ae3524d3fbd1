"""The ledger of budgets as the tick knows it: a hold, by which jobs wait until they are paid."""

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
        self._left: dict[str, int] = {}
        """The tokens of budgets after what was paid."""
        self._purses: dict[str, TokenPurse] = {}

    def learn(self, lines: Sequence[Line]) -> None:
        """Learn nothing: budgets do not depend on the places of lines."""

    def purse(self, line: Line) -> "TokenPurse | None":
        """The budgets from which the jobs of a line draw; None if there are none."""
        if not line.draws:
            return None
        purse = self._purses.get(line.draws)
        if purse is None:
            draws = _draws(line.draws)
            for draw in draws:
                if draw.key not in self._left:
                    self._left[draw.key] = self._ledger.available(draw.key)
            purse = self._purses[line.draws] = TokenPurse(self._ledger, draws, self._left)
        return purse

    def turn(self, line: Line) -> None:
        """Budgets give no turns."""


class TokenPurse:
    """The budgets from which the jobs of some lines draw. It follows `zq.tick.hooks.Purse`."""

    def __init__(self, ledger: TokenLedger, draws: Draws, left: dict[str, int]) -> None:
        """`left` has the tokens of budgets, after what other purses of the till have paid."""
        self._ledger = ledger
        self._draws = draws
        self._left = left

    def refuses(self) -> tuple[str, int] | None:
        """The first budget that cannot pay for a job, and the cost."""
        for draw in self._draws:
            left = self._left[draw.key]
            if left < draw.cost:
                self._ledger.refuse(self._draws, draw, left)
                return draw.key, draw.cost
        return None

    def pay(self) -> None:
        """Pay for one job."""
        for draw in self._draws:
            self._left[draw.key] -= draw.cost
