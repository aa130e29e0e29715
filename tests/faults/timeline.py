"""A picture of one run. (To come: targets, runs and faults over time.)"""

from tests.faults.history import History, Verdict


def draw(title: str, history: History, verdict: Verdict) -> str:
    return f"<svg xmlns='http://www.w3.org/2000/svg'><title>{title}</title></svg>"
