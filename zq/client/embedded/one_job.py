"""Runs verbs about one job, and shows their results as a server would."""

from collections.abc import Callable, Coroutine
from typing import Any

from zq.client.embedded.deliveries import Do
from zq.client.embedded.words import stored_job
from zq.client.values import StoredJob
from zq.model.job import JobRecord
from zq.service.services import Services
from zq.wire.documents import job_document
from zq.wire.ids import key_of

JobVerb = Callable[[Services], Coroutine[Any, Any, JobRecord]]
NamedVerb = Callable[[Services, int], Coroutine[Any, Any, JobRecord]]


async def shown(do: Do, verb: JobVerb, *, whole: bool = False) -> StoredJob:
    """The result of a verb. With `whole`, it has its payload."""

    async def show(services: Services) -> StoredJob:
        job = await verb(services)
        return stored_job(job_document(job, services.ids, with_payload=whole))

    return await do(show)


async def named(do: Do, id: str, verb: NamedVerb, *, whole: bool = False) -> StoredJob:
    """The result of a verb about the job with this id. Raises `JobNotFound`."""
    return await shown(do, lambda services: verb(services, key_of(id, services.ids)), whole=whole)
