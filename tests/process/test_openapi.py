"""The server matches its description: schemathesis draws requests from it, and judges answers."""

import itertools
from pathlib import Path

import pytest

from zq.http.api.description.operations import OPERATIONS

from .judge import Drawn, judged
from .schemathesis_hooks import FRAMINGS, STREAMS
from .server import running

LEFT_OUT = (
    # Rules of texts (jq programs, printable names) that no JSON schema says.
    "positive_data_acceptance",
    # There are no keys here; tests/process/test_access.py has some.
    "ignored_auth",
    "object_level_authorization",
    # Takes every request by id for one that a new job answers; an acknowledgement is 404 until the
    # job is in flight.
    "ensure_resource_availability",
)
"""Every other check of schemathesis is made, of every operation."""

PHASES = "coverage,fuzzing"
"""Values of each operation in turn, and requests with drawn ones."""


@pytest.mark.parametrize(
    ("phases", "examples", "everywhere"),
    [(PHASES, 1, False), pytest.param(f"{PHASES},stateful", 4, True, marks=pytest.mark.long)],
)
async def test_the_server_keeps_to_its_description(
    phases: str, examples: int, everywhere: bool, tmp_path: Path
) -> None:
    read = tmp_path / "streams"
    drawn = Drawn(
        "/openapi.json",
        "process.schemathesis_hooks",
        LEFT_OUT,
        examples,
        phases=phases,
        everywhere=everywhere,
    )
    async with running(tmp_path / "data") as server:
        some = {} if everywhere else {"ONE_IN": "4", "ONE_TYPE_IN": "2"}
        variables = {"STREAMS_READ": str(read), **some}
        assert await judged(server, drawn, tmp_path, variables) == len(OPERATIONS)
    expected = {f"{path} {framing}" for path, framing in itertools.product(STREAMS, FRAMINGS)}
    assert set(read.read_text().splitlines()) == expected
