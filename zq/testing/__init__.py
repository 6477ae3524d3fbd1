"""For tests of programs that use zq: the real server on a temporary database, and a clock.

`zq.testing.plugin` has the fixtures. pytest finds them by itself once zq is installed. Nothing else
here needs pytest, but for the suite of backends, `zq.testing.contract`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from zq.client.amounts import Seconds
    from zq.client.app import App
    from zq.client.outcome import Outcome
    from zq.testing.serving import TestServer, server

__all__ = ["TestServer", "run_until_idle", "server"]


def __getattr__(name: str) -> Any:
    """Import the server when it is first asked for: pytest imports this package at each start."""
    if name not in ("TestServer", "server"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from zq.testing import serving

    return getattr(serving, name)


async def run_until_idle(
    app: App, *, timeout: Seconds = 10.0, raise_failures: bool = True
) -> list[Outcome]:
    """Run the app's jobs until none is ready or in flight. Return the outcome of each execution.

    The first final failure raises the handler's own exception again, so a test fails where its code
    fails. With `raise_failures=False` it is only among the outcomes. Raises `WaitTimeout`.
    """
    from zq.client.outcome import raise_failures_of
    from zq.client.worker.worker import Worker

    outcomes = await Worker(app).run_until_idle(timeout)
    if raise_failures:
        raise_failures_of(outcomes)
    return outcomes
