"""Each attack of the bench, at a small size: the server answers it, and answers others."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from bench.__main__ import run
from bench.attacks.attacks import Found, all_attacks, attacks_named, polite_client, waits_in
from bench.attacks.site import POLITE, Attack, Site, site_of


@pytest.fixture(scope="module")
def site_for(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[Attack], Site]]:
    """A server that was started as an attack needs it. Attacks that need the same share one."""
    sites: dict[str, Site] = {}
    with ExitStack() as stack:

        def site_for(attack: Attack) -> Site:
            needs = repr((attack.flags, attack.keys, attack.parts))
            if needs not in sites:
                place = tmp_path_factory.mktemp("attacked")
                sites[needs] = stack.enter_context(site_of(attack, place))
            return sites[needs]

        yield site_for


@pytest.mark.parametrize("attack", all_attacks(), ids=lambda attack: attack.name)
def test_a_server_answers_others_after_an_attack(
    attack: Attack, site_for: Callable[[Attack], Site]
) -> None:
    job = b'{"queue": "polite", "type": "t", "payload": 1}'
    site = site_for(attack)
    outcome = attack.run(site, attack.small)
    assert outcome.answer
    assert site.request("POST", "/jobs", job, key=POLITE).status == 201


@pytest.mark.long
@pytest.mark.parametrize("attack", all_attacks(), ids=lambda attack: attack.name)
def test_others_are_answered_during_an_attack_of_full_size(attack: Attack, tmp_path: Path) -> None:
    notes = tmp_path / "waits"
    with site_of(attack, tmp_path) as site, polite_client(site, notes):
        assert attack.run(site, attack.size).answer
        seen = len(waits_in(notes))
        while len(waits := waits_in(notes)) <= seen:
            time.sleep(0.1)
    assert all(each.answered for each in waits)


def test_an_attack_is_measured_by_the_waits_of_others(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["attacks", "--attacks", all_attacks()[0].name, "--scale", "0.001", "--json"]
    monkeypatch.setattr("bench.attacks.attacks.BEFORE", 0.0)
    monkeypatch.setattr("bench.attacks.attacks.LEAST", 0.0)
    assert run(words) == 0
    for line in json.loads(capsys.readouterr().out)["results"]:
        found = Found(**line)
        assert found.longest > 0
        assert found.ran >= 0
        assert found.queued >= 0
        assert found.p99_before > 0
        assert not found.unanswered


def test_an_attack_that_nobody_knows_is_refused() -> None:
    with pytest.raises(ValueError, match="bodies"):
        attacks_named("everything")
