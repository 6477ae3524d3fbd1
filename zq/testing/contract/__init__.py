"""What every backend promises, as a suite that any of them can be put through.

    class TestMine(BackendContract):
        @pytest.fixture
        async def backend(self) -> AsyncIterator[Backend]:
            backend = MyBackend()
            yield backend
            await backend.close()

It needs an empty queue, an event loop for coroutine tests (pytest-aiohttp or pytest-asyncio in
automatic mode), and real time: nothing in it takes longer than a moment.
"""

from zq.testing.contract.delivering import Delivering
from zq.testing.contract.managing import Managing


class BackendContract(Delivering, Managing):
    """The suite. What subclasses have to provide is the fixture `backend`."""
