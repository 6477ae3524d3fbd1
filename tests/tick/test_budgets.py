"""Claims of jobs with budgets, against the plainest rule: walk all, take those that are paid."""

from fractions import Fraction
from pathlib import Path
from random import Random

import pytest
from store.rig import NOW, Ticker, make_ticker, new_job

from zq.features.budgets.model import BudgetPolicy, Draw
from zq.features.budgets.model_jobs import CreateBudget, drawing, draws_in
from zq.model.commands import Claim, DeleteJob, Fail, PatchJob, Return, Succeed
from zq.model.job import JobRecord, JobSettings
from zq.model.lifecycle import Status
from zq.model.patching import Patch
from zq.model.settling import Failure

POLICIES = {
    "a": BudgetPolicy(3),
    "b": BudgetPolicy(2, 700, 5),
    "c": BudgetPolicy(1),
}
QUEUES = ("q", "r")


class Tokens:
    """The tokens of each budget, as fractions."""

    def __init__(self) -> None:
        self.left = {key: Fraction(policy.capacity) for key, policy in POLICIES.items()}
        self.at = NOW

    def pass_to(self, now: int) -> None:
        for key, policy in POLICIES.items():
            if policy.duration_ms is not None:
                came = Fraction((now - self.at) * policy.allocation, policy.duration_ms)
                self.left[key] = min(self.left[key] + came, Fraction(policy.capacity))
        self.at = now

    def pays(self, job: JobRecord) -> bool:
        draws = draws_in(job.options) or ()
        if any(self.left[draw.key] < draw.cost for draw in draws):
            return False
        for draw in draws:
            self.left[draw.key] -= draw.cost
        return True

    def give_back(self, job: JobRecord) -> None:
        for draw in (draws_in(job.options) or ()) or ():
            if POLICIES[draw.key].duration_ms is None:
                self.left[draw.key] += draw.cost


def draws_of(random: Random) -> JobSettings | None:
    keys = random.sample(sorted(POLICIES), random.choice((0, 1, 1, 2)))
    costs = {"a": (1, 2, 3), "b": (1, 4), "c": (1,)}
    draws = tuple(Draw(key, random.choice(costs[key])) for key in keys)
    return drawing(draws) if draws else None


@pytest.mark.parametrize("seed", range(6))
def test_each_claim_takes_the_first_jobs_that_can_be_paid(tmp_path: Path, seed: int) -> None:
    random, ticker, tokens = Random(seed), make_ticker(tmp_path / "zq.db"), Tokens()
    ticker.run(*(CreateBudget(key, policy) for key, policy in POLICIES.items()))
    for _ in range(120):
        ticker.now += random.choice((0, 1, 50, 333))
        tokens.pass_to(ticker.now)
        before = ticker.jobs()
        held = [key for key, job in before.items() if job.status is Status.IN_FLIGHT]
        waits = [key for key, job in before.items() if job.status is Status.READY]
        roll = random.random()
        if roll < 0.35 or not before:
            ticker.run(
                ticker.enqueue(
                    new_job(
                        queue=random.choice(QUEUES),
                        priority=random.choice((1, 2)),
                        options=draws_of(random),
                    )
                    for _ in range(random.randrange(1, 5))
                )
            )
        elif roll < 0.6 and held:
            key = random.choice(held)
            tokens.give_back(before[key])
            ending = random.choice(
                (
                    Succeed([key]),
                    Fail(key, Failure("m", kill=True)),
                    DeleteJob(key),
                    Return(1, [key]),
                )
            )
            ticker.run(ending)
        elif roll < 0.7 and waits:
            key = random.choice(waits)
            patch = Patch(queue=random.choice(QUEUES), priority=random.choice((1, 2)))
            ticker.run(random.choice((DeleteJob(key), PatchJob(key, "x", patch))))
        queues = random.choice((None, ("q",), ("r",)))
        limit = random.randrange(4)
        ready = sorted(
            (job for job in ticker.jobs().values() if job.status is Status.READY),
            key=lambda job: (job.priority, job.key),
        )
        expected: list[int] = []
        for job in ready:
            is_meant = len(expected) < limit and (queues is None or job.queue in queues)
            if is_meant and tokens.pays(job):
                expected.append(job.key)
        claims = [Claim(queues, [(1, limit)])] if limit else []
        taken = ticker.run(claims=claims).claimed
        assert [job.key for jobs in taken for job in jobs] == expected
        check_lines(ticker)
    ticker.check_counts()
    ticker.close()


def check_lines(ticker: Ticker) -> None:
    """What is kept of lines, of budgets and of tokens in use is what a full count finds."""
    rows = ticker.sqlite.execute
    lines = "SELECT id, queue, draws, priority, head FROM lines"
    waiting = (
        "SELECT line, queue, options -> '$.budgets', priority,"
        " min(iif(status = 1 AND held = 2, id, NULL)) FROM jobs"
        " WHERE status <= 1 AND options -> '$.budgets' IS NOT NULL GROUP BY 1, 2, 3, 4"
    )
    assert set(rows(lines)) == set(rows(waiting))
    assert not list(rows("SELECT id FROM jobs WHERE (held & 2 = 2) <> (line IS NOT NULL)"))
    kept = "SELECT key, unfinished, waiting, in_use FROM budgets WHERE unfinished"
    full = (
        "SELECT d.value ->> 0, count(*), sum(status = 1),"
        " sum(iif(status = 2, d.value ->> 1, 0))"
        " FROM jobs, json_each(options -> '$.budgets') AS d WHERE status <= 2 GROUP BY 1"
    )
    assert set(rows(kept)) == set(rows(full))
    assert (
        ticker.value("SELECT count(*) FROM budgets WHERE in_use > allocation AND key <> 'b'") == 0
    )


def test_a_budget_of_one_token_pays_for_one_line_after_the_other(ticker: Ticker) -> None:
    ticker.run(CreateBudget("slow", BudgetPolicy(1, 10)))
    draws = drawing((Draw("slow", 1),))
    keys = [ticker.store(1, priority=place, options=draws)[0] for place in range(4)]
    taken = [ticker.take(4)]
    for _ in keys[1:]:
        ticker.now += 10
        # The engine does this at the time that the budget has named, or with any claim.
        ticker.run(refill=True)
        taken.append(ticker.take(4))
    assert taken == [[key] for key in keys]
