"""The backlog for programs, over HTTP and embedded."""

import pytest

from zq.client.app import App
from zq.client.errors import BackendError
from zq.client.values import Submission
from zq.features.backlog.client import BacklogDocument, ServerBacklog


async def test_the_backlog_is_told_of_one_queue_and_of_several(app: App) -> None:
    backlog = ServerBacklog(app.backend.ask)
    jobs = [Submission(queue, "t", 1) for queue in ("shop-a", "shop-a", "shop-a", "shop-b")]
    await app.backend.enqueue(jobs)

    assert await backlog.of_queue("shop-a", 2) == BacklogDocument(3, 0, 3, 2, {})
    assert await backlog.of_queues(["shop-a", "shop-b"], 2) == BacklogDocument(4, 0, 4, 2, {})
    assert await backlog.of_prefix("shop-", 4) == BacklogDocument(4, 0, 4, 1, {})
    assert await backlog.of_queue("never") == BacklogDocument(0, 0, 0, 0, {})
    with pytest.raises(BackendError, match="target"):
        await backlog.of_queue("shop-a", 0)
