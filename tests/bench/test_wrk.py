"""The load of wrk against its own figures."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from bench import wrk
from bench.http1 import LoadError
from bench.load import Target
from bench.servers import Lab, ServerError, lab


@pytest.fixture
def place() -> Iterator[Lab]:
    with lab() as found:
        yield found


def test_a_missing_wrk_is_told_with_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(ServerError, match="apt-get install wrk"):
        wrk.find_wrk()


def test_enqueues_and_acknowledges(place: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wrk, "MOST_ACKS_A_SECOND", 30_000)
    with place.server("baseline") as target:
        stored = wrk.enqueue(target, 8, 1, 3, place.directory)
    with place.server("baseline") as target:
        acknowledged = wrk.acknowledge(target, 8, 1, 3, place.directory)
    for result in (stored, acknowledged):
        assert result.rate > 0
        assert result.cores > 0
        assert 0 < result.p50 <= result.p99


def test_no_figure_is_made_from_errors(place: Lab) -> None:
    script = wrk.written(place.directory / "lost.txt", [b"/nowhere\t{}"])
    with place.server("baseline") as target, pytest.raises(LoadError, match="requests of wrk"):
        wrk.drive(target, 2, 1, script)


def test_running_out_of_jobs_is_an_error(place: Lab) -> None:
    script = wrk.written(
        place.directory / "few.txt", [b"/jobs\t" + b'{"queue":"q","type":"t","payload":1}']
    )
    with place.server("baseline") as target, pytest.raises(LoadError, match="ran out"):
        wrk.drive(target, 2, 1, [*script, "once"])


def test_nobody_listens(place: Lab) -> None:
    with place.server("baseline") as target:
        port = target.port
    with pytest.raises(LoadError):
        wrk.drive(
            Target(port, target.pid), 1, 1, wrk.written(place.directory / "x.txt", [b"/jobs\t"])
        )
