"""Every client against each library of HTTP/2."""

import pytest


@pytest.fixture(params=["h2", "zttp"])
def http2_engine(request: pytest.FixtureRequest) -> str:
    return str(request.param)
