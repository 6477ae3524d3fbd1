"""Runs the jobs of a test until none is left."""

from collections.abc import Sequence

from zq.client.amounts import Seconds
from zq.client.app import App
from zq.client.errors import JobFailed
from zq.client.outcome import Outcome
from zq.client.worker.worker import Worker


async def run_until_idle(
    app: App, *, timeout: Seconds = 10.0, raise_failures: bool = True
) -> list[Outcome]:
    """Run the app's jobs until none is ready or in flight. Return the outcome of each execution.

    The first final failure raises the handler's own exception again, so a test fails where its code
    fails. With `raise_failures=False` it is only among the outcomes. Raises `WaitTimeout`.
    """
    outcomes = await Worker(app).run_until_idle(timeout)
    if raise_failures:
        raise_failures_of(outcomes)
    return outcomes


def raise_failures_of(outcomes: Sequence[Outcome]) -> None:
    """Raise what the handler of the first final failure has raised."""
    for outcome in outcomes:
        if not outcome.ok and outcome.final:
            raise outcome.exception or _died(outcome)


def _died(outcome: Outcome) -> JobFailed:
    message = outcome.error.message if outcome.error else "it failed"
    return JobFailed(f"job {outcome.id} is dead: {message}", outcome.error)
