"""Each call to the disk fails once, with EIO and with ENOSPC: refused or durable, never silent."""

import errno
import math
from collections import Counter
from pathlib import Path

import pytest
from conformance.client import new_job
from conformance.raw import RawConnection
from process.server import running
from tiers import sizes

from .actors import Notebook
from .disk import Call, Disk, Fault, new_disk
from .history import Enqueue, Outcome
from .io_faults import CLEAN, DISK_FAILED, any_unknown, growing, recover, suffer
from .lives import judge

STEPS = {Call.WRITE: 3.0, Call.SYNC: 2.0, Call.TRUNCATE: 1.5, Call.OPEN: 1.8}
"""How densely the calls are tried: 1 tries each of them."""


@pytest.mark.parametrize(
    ("call", "error"),
    [
        *((call, errno.EIO) for call in Call),
        (Call.WRITE, errno.ENOSPC),
        # No other call tells the two apart.
        *(
            pytest.param(call, errno.ENOSPC, marks=pytest.mark.long)
            for call in Call
            if call is not Call.WRITE
        ),
    ],
    ids=lambda each: errno.errorcode[each] if isinstance(each, int) else each,
)
@sizes("closest", math.inf, 1.1)
async def test_whatever_was_answered_stays_true(
    closest: float, call: Call, error: int, disk_library: Path, tmp_path: Path
) -> None:
    ends: Counter[int] = Counter()
    refusals = 0
    for number in growing(min(closest, STEPS[call])):
        folder = tmp_path / str(number)
        disk, notebook, fault = (
            new_disk(disk_library, folder),
            Notebook(),
            Fault(call, number, error),
        )
        code = await suffer(disk, fault, notebook)
        print(fault, code)
        await recover(disk, notebook)
        judge(notebook.history, folder)
        assert code == DISK_FAILED if any_unknown(notebook) else code in (CLEAN, DISK_FAILED)
        if not disk.report.exists():
            assert code == CLEAN
            break
        ends[code] += 1
        enqueues = [event for event in notebook.history if isinstance(event, Enqueue)]
        refusals += any(enqueue.outcome is Outcome.REFUSED for enqueue in enqueues)
        # SQLite tries again to make its shared memory, which holds nothing of value.
        if (call, error) == (Call.WRITE, errno.EIO) and "-shm" not in disk.report.read_text():
            assert code == DISK_FAILED
    assert ends[DISK_FAILED] > 1, "no call failed that mattered"
    if (call, error) == (Call.WRITE, errno.ENOSPC):
        assert ends[CLEAN] > 1
        assert refusals > 1


async def test_a_request_that_never_ends_does_not_keep_a_server_whose_disk_has_failed(
    disk: Disk,
) -> None:
    environment = disk.environment(Fault(Call.SYNC, 1, errno.EIO), triggered=True)
    async with running(disk.root, env=environment) as server, server.client() as client:
        half = await RawConnection.open(server.port)
        head = b"POST /jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        await half.send(head + b"Content-Length: 100\r\n\r\n{")
        await client.enqueue()  # the half request has been read by now
        disk.trigger.touch()
        reply = await client.post("/jobs", new_job())
        assert (reply.status, reply.headers["zq-error"]) == (503, "outcome_unknown")
        assert await server.exited() == DISK_FAILED
        (told,) = [text for text in server.messages if "the disk has failed" in text]
        assert f"{disk.root / 'zq.db'}: " in told
        assert f"exit code {DISK_FAILED}" in told
        await half.close()


async def test_a_used_up_quota_refuses_new_jobs_and_ends_nothing(disk: Disk) -> None:
    environment = disk.environment(Fault(Call.WRITE, 1, errno.EDQUOT), triggered=True)
    async with running(disk.root, env=environment) as server, server.client() as client:
        kept = await client.enqueue()
        disk.trigger.touch()
        for _ in range(3):
            reply = await client.post("/jobs", new_job())
            assert (reply.status, reply.headers["zq-error"]) == (507, "storage_full")
        disk.trigger.unlink()
        more = await client.enqueue()
        assert await client.exists(kept["id"])
        assert await client.exists(more["id"])
