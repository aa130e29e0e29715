"""The alerting rules that are shipped: they are whole, and ask only for what `/metrics` shows."""

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from ksana.domain.states import CRONJOB_NAMES, ExecutionStatus
from ksana.engine.measures import MeasureOptions, Measures
from ksana.engine.plans.findings import Findings
from ksana.store.plan_requests import PlanFigures
from ksana.store.requests import Figures
from ksana.telemetry import Metrics

ROOT = Path(__file__).parents[2]
RULES = yaml.safe_load((ROOT / "deploy" / "alerts.yml").read_text())
EACH: list[dict[str, Any]] = [rule for group in RULES["groups"] for rule in group["rules"]]
NAMES = [rule["alert"] for rule in EACH]
BY_PROMETHEUS = {"up"}
"""What Prometheus itself says of whom it asks."""
PAGE = ROOT / "docs" / "operate" / "metrics.md"

_SELECTOR = re.compile(r"(?<![\w:])([a-zA-Z_:][\w:]*)\s*(\{[^}]*\})?(?!\s*\()(?![\w:])")
_MATCHER = re.compile(r'(\w+)="([^"]*)"')
_WORDS = {"and", "or", "unless", "by", "without", "on", "ignoring", "bool", "offset"}


@pytest.fixture(scope="module")
def shown() -> dict[str, list[dict[str, str]]]:
    """What `/metrics` shows: the labels of each series, by the series' name; of those that have none yet, no labels."""
    metrics = Metrics()
    measures = Measures(metrics.registry, MeasureOptions())
    measures.refresh(Figures(jobs_enabled=0, jobs_disabled=0, active={}))
    measures.plans.refresh(PlanFigures({}, {}, None), Findings(), datetime(2026, 1, 5, tzinfo=UTC), up=True)
    found: dict[str, list[dict[str, str]]] = {}
    for family in text_string_to_metric_families(metrics.render().decode()):
        suffixes = {"counter": ("_total",), "histogram": ("_bucket", "_sum", "_count")}.get(family.type, ("",))
        found |= {f"{family.name}{suffix}": [] for suffix in suffixes}
        for sample in family.samples:
            found.setdefault(sample.name, []).append(sample.labels)
    return found


def selectors(expr: str) -> list[tuple[str, dict[str, str]]]:
    """The metrics that an expression asks for, each with the labels that it must have."""
    plain = re.sub(r"\b(by|without|on|ignoring)\s*\([^)]*\)", " ", expr)
    plain = re.sub(r"\[[^\]]*\]", " ", plain)
    found = [(name, dict(_MATCHER.findall(labels))) for name, labels in _SELECTOR.findall(plain)]
    return [(name, labels) for name, labels in found if name not in _WORDS]


@pytest.mark.parametrize(
    ("expr", "expected"),
    [
        ("ksana_up == 0", [("ksana_up", {})]),
        ('max by (job) (a_b{kind="x", c="y"}) > 5', [("a_b", {"kind": "x", "c": "y"})]),
        ("sum(rate(a_total[5m])) > 0.05 and on (job) b == 1e3", [("a_total", {}), ("b", {})]),
    ],
)
def test_the_metrics_of_an_expression_are_found(expr: str, expected: list[tuple[str, dict[str, str]]]) -> None:
    assert selectors(expr) == expected


def test_the_file_has_groups_of_rules_with_names_of_their_own() -> None:
    assert set(RULES) == {"groups"}
    assert all(set(group) == {"name", "rules"} and group["rules"] for group in RULES["groups"])
    assert len({group["name"] for group in RULES["groups"]}) == len(RULES["groups"])
    assert len(set(NAMES)) == len(NAMES)


@pytest.mark.parametrize("rule", EACH, ids=NAMES)
def test_a_rule_says_when_how_bad_and_what_to_do(rule: dict[str, Any]) -> None:
    assert set(rule) == {"alert", "expr", "for", "labels", "annotations"}
    assert re.fullmatch(r"[A-Z][A-Za-z]+", rule["alert"])
    assert re.fullmatch(r"\d+[smhd]", rule["for"])
    assert rule["labels"]["severity"] in {"page", "ticket", "info"}
    assert set(rule["annotations"]) == {"summary", "description"}
    assert rule["expr"].count("(") == rule["expr"].count(")")


@pytest.mark.parametrize("rule", EACH, ids=NAMES)
def test_a_rule_asks_for_what_is_shown(rule: dict[str, Any], shown: dict[str, list[dict[str, str]]]) -> None:
    asked = selectors(rule["expr"])
    assert asked
    for name, labels in asked:
        if name in BY_PROMETHEUS:
            continue
        assert name in shown, f"/metrics has no {name}"
        # Of a counter with labels there is nothing before it has counted: its words are checked below.
        assert not shown[name] or any(labels.items() <= each.items() for each in shown[name]), (name, labels)


def test_what_is_counted_by_its_end_has_the_names_that_there_are() -> None:
    ends = {
        labels["status"] for rule in EACH for name, labels in selectors(rule["expr"]) if name == "cronjob_run_total"
    }
    assert ends <= {CRONJOB_NAMES[status] for status in ExecutionStatus}


@pytest.mark.parametrize(
    ("expr", "threshold"),
    [
        ('ksana_runtime_keys{kind="ckpt"}', "> 10000"),
        ('ksana_runtime_keys{kind="lock"}', "> 100"),
        ("ksana_projection_lag_seconds", "> 5"),
        ("ksana_runtime_up", "== 0"),
    ],
)
def test_the_thresholds_of_document_004_are_there(expr: str, threshold: str) -> None:
    assert [rule for rule in EACH if expr in rule["expr"] and rule["expr"].endswith(threshold)]


def test_the_page_about_metrics_has_every_metric(shown: dict[str, list[dict[str, str]]]) -> None:
    ours = {re.sub(r"_(bucket|sum|count)$", "", name) for name in shown if name.startswith(("ksana_", "cronjob_"))}
    told = set(re.findall(r"^\| `(\w+)` \|", PAGE.read_text(), re.MULTILINE))
    assert {name for name in ours if not name.endswith("_created")} == told
