"""Deliveries by the keys of their jobs, without a door."""

import pytest

from zq.engine.delivery.takers import Subscription
from zq.instance import Instance
from zq.model.commands import Settled
from zq.model.errors import NotInFlight, StaleLease, TooLarge, WorkerNotFound
from zq.model.job import NewJob
from zq.model.leasing import Terms
from zq.model.reach import EVERYWHERE
from zq.model.settling import Completion, Failure
from zq.service.services import Services


async def stored(services: Services, count: int = 1) -> list[int]:
    jobs = [NewJob("q", "t", "{}", 2) for _ in range(count)]
    return list((await services.jobs.enqueue(jobs, EVERYWHERE)).keys)


async def claimed(services: Services, most: int) -> dict[int, int]:
    """Deliveries by key."""
    terms = Terms(lease_ms=60_000, claimant="c")
    with services.work.claimer("q", EVERYWHERE, most, terms, 0) as claimer:
        return {job.key: job.deliveries for job in await claimer.take()}


async def test_an_acknowledgement_tells_which_jobs_it_has_left_alone(services: Services) -> None:
    first, second = await stored(services, 2)
    assert await claimed(services, 1) == {first: 1}
    said = {first: Completion(lease=2)}
    assert await services.work.succeed([first, second], EVERYWHERE, said) == Settled(
        frozenset({second}), frozenset({first})
    )
    assert await services.work.succeed([first], EVERYWHERE) == Settled(frozenset())
    assert await services.work.succeed([], EVERYWHERE) == Settled(frozenset())


async def test_a_result_over_its_bound_is_refused_by_the_id_of_its_job(services: Services) -> None:
    (key,) = await stored(services)
    await claimed(services, 1)
    with pytest.raises(TooLarge, match=services.ids.text(key)):
        await services.work.succeed([key], EVERYWHERE, {key: Completion('"123456789"', 11)})
    assert not (await services.work.succeed([key], EVERYWHERE)).missing


async def test_a_lease_is_extended_and_given_back_by_its_delivery(services: Services) -> None:
    (key,) = await stored(services)
    await claimed(services, 1)
    extended = await services.work.extend([key], {key: 1}, 5_000, EVERYWHERE)
    assert extended.until == services.clock.now_ms() + 5_000
    assert not extended.refused.missing
    released = await services.work.release([key], {key: 2}, 0, EVERYWHERE)
    assert released.stale == {key}
    await services.work.release([key], {key: 1}, 0, EVERYWHERE)
    assert await claimed(services, 1) == {key: 2}


async def test_progress_and_failure_are_those_of_a_running_job(services: Services) -> None:
    (key,) = await stored(services)
    with pytest.raises(NotInFlight):
        await services.work.progress(key, "1", None, EVERYWHERE)
    await claimed(services, 1)
    with pytest.raises(StaleLease):
        await services.work.progress(key, "1", 2, EVERYWHERE)
    await services.work.progress(key, "1", 1, EVERYWHERE)
    assert (await services.work.fail(key, Failure("no"), EVERYWHERE)).attempts == 1


async def test_a_drained_worker_is_described_and_gets_nothing_more(instance: Instance) -> None:
    services = instance.services
    subscription = Subscription(window=2, worker="w")
    stream = services.work.open(["q"], EVERYWHERE, subscription, lambda: 0)
    (key,) = await stored(services)
    await stream.wait()
    (worker,) = services.admin.workers(EVERYWHERE)
    assert (worker.id, worker.held, worker.draining) == ("w", [key], False)
    with pytest.raises(WorkerNotFound):
        services.admin.drain("v", EVERYWHERE)
    (worker,) = services.admin.drain("w", EVERYWHERE)
    assert worker.draining
    services.work.close(stream)
    await services.admin.ping()


async def test_the_figures_of_the_server_go_with_what_it_has_done(services: Services) -> None:
    await stored(services, 3)
    await claimed(services, 2)
    figures = services.admin.figures()
    assert (figures.jobs.stored, figures.jobs.delivered, figures.streams) == (3, 2, 0)
    assert figures.is_accepting
    assert services.admin.health().refusal is None
    (queue,) = await services.queues.statistics(EVERYWHERE)
    assert (queue.queue, queue.deliveries.total, queue.oldest_ready_age_ms) == ("q", 2, 0)
