"""Every client, with each HTTP/2 library of the server."""

import pytest


@pytest.fixture(params=["h2", "zttp"])
def http2_engine(request: pytest.FixtureRequest) -> str:
    return str(request.param)
