"""The verbs that change jobs by filter, without a door."""

from collections.abc import Callable
from functools import partial

import pytest

from zq.features.sweeps.service_running import Sweeps, cancellable, changeable, revivable
from zq.model.errors import Unprocessable
from zq.model.filters import Filter
from zq.model.lifecycle import Status
from zq.model.patching import Patch
from zq.service.services import Services

DONE, HELD, WAITING = (
    Filter(statuses=(status,)) for status in (Status.COMPLETED, Status.IN_FLIGHT, Status.READY)
)


async def test_a_filter_that_names_jobs_which_the_change_leaves_alone_is_refused(
    services: Services,
) -> None:
    """Also for whoever uses no door, such as the embedded engine."""
    sweeps = services[Sweeps]
    with pytest.raises(Unprocessable, match="that is completed cannot be cancelled"):
        await sweeps.cancel(DONE, True)
    with pytest.raises(Unprocessable, match="in_flight cannot be cancelled without force"):
        await sweeps.cancel(HELD, False)
    with pytest.raises(Unprocessable, match="cannot patch jobs in Completed"):
        await sweeps.patch(DONE, Patch(priority=1))
    with pytest.raises(Unprocessable, match="completed cannot be requeued"):
        await sweeps.requeue(DONE, None)
    assert (await sweeps.cancel(HELD, True)).changed == 0
    assert (await sweeps.cancel(WAITING, False)).changed == 0


@pytest.mark.parametrize(
    "counted",
    [partial(cancellable, DONE, True), partial(changeable, DONE), partial(revivable, DONE)],
)
def test_what_a_preview_counts_is_refused_as_its_change_would_be(
    counted: Callable[[], Filter],
) -> None:
    with pytest.raises(Unprocessable):
        counted()
