"""The outbox on Django's connections."""

import pytest
from asgiref.sync import sync_to_async
from contrib.sample import set_up
from django.db import connection, transaction

from zq import outbox
from zq.client.app import App


async def test_a_row_is_written_in_the_transaction_of_django(zq_app: App) -> None:
    set_up()
    file = connection.settings_dict["NAME"]

    @zq_app.task
    def work(n: int) -> None: ...

    def write() -> None:
        outbox.create_table(connection)
        with transaction.atomic():
            outbox.enqueue(connection, work, 1)
        with pytest.raises(ZeroDivisionError), transaction.atomic():
            outbox.enqueue(connection, work, 2)
            raise ZeroDivisionError
        connection.close()

    await sync_to_async(write)()

    assert await outbox.Relay(zq_app, f"sqlite://{file}").run_until_empty() == 1
    (job,) = (await zq_app.backend.jobs()).jobs
    assert job.payload == {"args": [1], "kwargs": {}}
