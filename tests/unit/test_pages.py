"""The pages: whatever they point to is there, and what they tell operators to look for exists."""

import re
from pathlib import Path

import pytest
import yaml
from tests.faults.scenarios import scenarios

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", ROOT / "CONTRIBUTING.md", *sorted(ROOT.glob("docs/**/*.md"))]
FAULTS = (ROOT / "docs" / "operate" / "faults.md").read_text()
_LINK = re.compile(r"\]\((?!https?:)([^)#\s]*)(?:#([^)\s]*))?\)")


def anchors(page: Path) -> set[str]:
    """Of its headings, as GitHub makes them."""
    heads = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).strip().replace(" ", "-") for head in heads}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page: Path) -> None:
    for target, anchor in _LINK.findall(page.read_text()):
        there = (page.parent / target).resolve() if target else page
        assert there.exists(), target
        assert not anchor or there.suffix != ".md" or anchor in anchors(there), f"{target}#{anchor}"


def test_the_page_of_faults_names_scenarios_that_there_are() -> None:
    kept = {name for cell in re.findall(r"kept: ([^|]*)", FAULTS) for name in re.findall(r"F\d+\w*", cell)}
    assert kept
    assert kept <= set(scenarios())


def test_the_page_of_faults_names_actions_alerts_and_figures_that_there_are() -> None:
    told = (ROOT / "docs" / "operate" / "logs.md").read_text()
    figures = (ROOT / "docs" / "operate" / "metrics.md").read_text()
    rules = yaml.safe_load((ROOT / "deploy" / "alerts.yml").read_text())
    alerts = {rule["alert"] for group in rules["groups"] for rule in group["rules"]}
    words = set(re.findall(r"`([^`]+)`", FAULTS))
    actions = {
        word
        for word in words
        if re.fullmatch(r"(instance|engine|serve|store|run|schedule|executors|runtime)\.\w+", word)
    }
    assert {word for word in actions if f"`{word}`" not in told} == set()
    assert {word for word in words if re.fullmatch(r"Ksana[A-Z]\w+", word)} <= alerts
    assert {word for word in words if re.match(r"(ksana|cronjob)_", word) and f"`{word}`" not in figures} == set()
