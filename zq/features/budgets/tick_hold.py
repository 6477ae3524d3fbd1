"""The ledger of budgets as the tick knows it: a hold, by which jobs wait until they are paid."""

from collections.abc import Sequence

from zq.features.budgets.model_jobs import draws_in
from zq.features.budgets.tick_changes import create_missing, refuse_gone, refuse_unpayable
from zq.features.budgets.tick_ledger import HELD_BY_BUDGET, TokenLedger
from zq.features.budgets.tick_lines import leave_lines, with_lines
from zq.model.commands import Claim
from zq.model.errors import Unprocessable
from zq.model.job import JobRecord, JobSettings, NewJob
from zq.model.reach import BudgetMaker
from zq.tick.gates import Gates
from zq.tick.walk import FoundJobs
from zq.tick.work import UnitOfWork


class BudgetHold(TokenLedger):
    """Holds jobs that draw from budgets. It follows `zq.tick.hooks.Hold`."""

    bit = HELD_BY_BUDGET

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

    def add_held(
        self, work: UnitOfWork, wanted: Claim, gates: Gates, now: float, found: FoundJobs
    ) -> FoundJobs:
        """The jobs for a claim from the indexes and from lines, as far as there are tokens."""
        return with_lines(work, wanted, gates, now, found)

    def let_go(self, work: UnitOfWork, jobs: Sequence[JobRecord]) -> None:
        """Remove jobs from their lines, since they are about to be taken."""
        leave_lines(work, jobs)
