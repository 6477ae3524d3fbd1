"""The alert rules and the dashboard of the documents: they name what `/metrics` has, and work."""

import json
import re
import subprocess
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from zq.operators.ops.http_metrics import every_metric

ROOT = Path(__file__).parents[2]
ALERTS = ROOT / "docs" / "alerts.yml"
DASHBOARD = ROOT / "docs" / "grafana.json"

OF_PROMETHEUS = {"instance", "le"}
"""Labels that the scraper adds, or that the buckets of a histogram have."""

_SELECTOR = re.compile(r"(zq_\w+)(?:\{([^}]*)\})?")
_LABEL = re.compile(r"(\w+)\s*(?:=~|!=|!~|=)")
_GROUPING = re.compile(r"\b(?:by|on)\s*\(([^)]*)\)")


def labels_by_name() -> dict[str, set[str]]:
    """The labels of every series that a scrape has."""
    found = {metric.name: set(metric.labels) for metric in every_metric()}
    for metric in every_metric():
        if metric.kind == "histogram":
            for suffix in ("bucket", "sum", "count"):
                found[f"{metric.name}_{suffix}"] = set(metric.labels)
    return found


def panels() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(DASHBOARD.read_text())["panels"]
    return found


def expressions() -> Iterator[str]:
    """The queries of all panels, with values in place of Grafana's variables."""
    for panel in panels():
        for target in panel["targets"]:
            text = target["expr"].replace("$__rate_interval", "5m")
            yield text.replace("$instance", ".*").replace("$queue", ".*")


def promtool(*words: str | Path) -> str:
    run = subprocess.run(
        ["promtool", *map(str, words)], capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stdout + run.stderr
    return run.stdout


def unknown(text: str) -> set[str]:
    """What a query names and no scrape has."""
    known = labels_by_name()
    found: set[str] = set()
    allowed = set(OF_PROMETHEUS)
    for name, matchers in _SELECTOR.findall(text):
        labels = set(_LABEL.findall(matchers))
        if name not in known:
            found.add(name)
            continue
        allowed |= known[name]
        found |= {f"{name}: {label}" for label in labels - known[name] - OF_PROMETHEUS}
    for names in _GROUPING.findall(text):
        found |= {name.strip() for name in names.split(",")} - allowed
    return found


def test_what_there_is_not_is_noticed() -> None:
    assert unknown('sum by (queue, code) (zq_jobs{quue="a"}) / zq_job') == {
        *("zq_jobs: quue", "zq_job", "code"),
    }


def test_every_alert_fires_when_it_should_and_not_otherwise() -> None:
    assert "SUCCESS" in promtool("check", "rules", ALERTS)
    assert "SUCCESS" in promtool("test", "rules", Path(__file__).with_name("alerts.yml"))


def test_every_alert_is_tried() -> None:
    tried = set(re.findall(r"alertname: (\w+)", Path(__file__).with_name("alerts.yml").read_text()))
    assert set(re.findall(r"alert: (\w+)", ALERTS.read_text())) == tried


def test_alerts_name_only_metrics_and_labels_that_there_are() -> None:
    rules = ALERTS.read_text().split("- alert: ")[1:]
    found = [rule.partition("expr:")[2].partition("\n        labels:")[0] for rule in rules]
    assert all("zq_" in expression for expression in found)
    assert [unknown(expression) for expression in found] == [set()] * len(rules)


def test_panels_name_only_metrics_and_labels_that_there_are() -> None:
    assert {text: unknown(text) for text in expressions() if unknown(text)} == {}


def test_every_query_of_a_panel_is_one(tmp_path: Path) -> None:
    rules = [{"record": f"q:{n}", "expr": text} for n, text in enumerate(expressions())]
    file = tmp_path / "rules.yml"
    # JSON is YAML.
    file.write_text(json.dumps({"groups": [{"name": "panels", "rules": rules}]}))
    assert f"{len(rules)} rules found" in promtool("check", "rules", file)


def test_panels_have_names_of_their_own_and_do_not_overlap() -> None:
    for one, other in combinations(panels(), 2):
        assert one["id"] != other["id"]
        assert one["title"] != other["title"]
        assert apart(one["gridPos"], other["gridPos"]), (one["title"], other["title"])
    assert all(panel["gridPos"]["x"] + panel["gridPos"]["w"] <= 24 for panel in panels())


def apart(one: dict[str, int], other: dict[str, int]) -> bool:
    """Whether two places on the grid share none."""
    beside = one["x"] + one["w"] <= other["x"] or other["x"] + other["w"] <= one["x"]
    below = one["y"] + one["h"] <= other["y"] or other["y"] + other["h"] <= one["y"]
    return beside or below


@pytest.mark.parametrize("name", ["source", "instance", "queue"])
def test_every_variable_of_a_query_is_asked_for(name: str) -> None:
    variables = json.loads(DASHBOARD.read_text())["templating"]["list"]
    assert [variable["name"] for variable in variables].count(name) == 1
    assert f"${name}" in DASHBOARD.read_text() or f"${{{name}}}" in DASHBOARD.read_text()
