"""The promises of every backend, as a suite of tests that any backend can run.

    class TestMine(BackendContract):
        @pytest.fixture
        async def backend(self) -> AsyncIterator[Backend]:
            backend = MyBackend()
            yield backend
            await backend.close()

The suite needs an empty queue, an event loop for coroutine tests (pytest-aiohttp or pytest-asyncio
in automatic mode), and real time. No test takes longer than a moment.
"""

from zq.testing.contract.delivering import Delivering
from zq.testing.contract.managing import Managing


class BackendContract(Delivering, Managing):
    """The suite. A subclass provides the fixture `backend`."""
