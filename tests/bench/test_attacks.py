"""Each attack of the bench, at a small size: the server answers it, and answers others."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from bench.attacks.attacks import Found, polite_client, waits_in
from bench.attacks.catalogue import all_attacks, attacks_named
from bench.attacks.site import POLITE, Attack, site_of


@pytest.mark.parametrize("attack", all_attacks(), ids=lambda attack: attack.name)
def test_a_server_answers_others_after_an_attack(attack: Attack, tmp_path: Path) -> None:
    job = b'{"queue": "polite", "type": "t", "payload": 1}'
    with site_of(attack, tmp_path) as site:
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


def test_an_attack_is_measured_by_the_waits_of_others() -> None:
    words = ["attacks", "--attacks", all_attacks()[0].name, "--scale", "0.001", "--json"]
    shown = subprocess.run(
        [sys.executable, "-m", "bench", *words], capture_output=True, text=True, check=False
    )
    assert not shown.returncode, shown.stderr
    for line in json.loads(shown.stdout)["results"]:
        found = Found(**line)
        assert found.longest > 0
        assert found.ran >= 0
        assert found.queued >= 0
        assert found.p99_before > 0
        assert not found.unanswered


def test_an_attack_that_nobody_knows_is_refused() -> None:
    with pytest.raises(ValueError, match="bodies"):
        attacks_named("everything")
