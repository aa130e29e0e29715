"""The picture: whole, and small whatever it shows."""

from xml.etree import ElementTree as ET

from tests.faults.checker import check
from tests.faults.history import Band, Verdict
from tests.faults.test_checker import START, clean
from tests.faults.timeline import RED, draw


def test_it_shows_what_was_due_what_ran_and_what_was_done() -> None:
    history = clean()
    history.bands.append(Band("kill", "i0 & co", START + 20, START + 25))
    del history.hits[3]
    picture = draw("F1 <gate>", history, check(history))
    ET.fromstring(picture)
    assert "F1 &lt;gate&gt;" in picture
    assert "kill i0 &amp; co" in picture
    assert f'fill="{RED}"><title>1 due, worst: LOST' in picture


def test_sixty_thousand_instants_are_a_small_picture() -> None:
    history = clean()
    verdict = Verdict(targets=[(f"c{number % 1000}", START + number / 100, "executed") for number in range(60_000)])
    assert len(draw("many", history, verdict)) < 100_000
