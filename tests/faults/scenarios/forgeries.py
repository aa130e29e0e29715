"""Callbacks with tokens that are wrong: guessed, of somebody else, cut, or not tokens at all."""

import json
import math
import random
import secrets
import statistics
import string
import time
from collections.abc import Callable
from urllib.parse import quote

import httpx2

from tests.faults.arena import Arena
from tests.faults.history import History, Verdict
from tests.faults.reports import CALLBACKS, SUCCESS, Desk, Pending, forbid, received, transitions
from tests.faults.scenarios import scenario

GUESSES = 15_000
SAMPLES = 1_500
ROUNDS = 3
"""The t-test is wrong once in a hundred times: it counts only if it says the same three times."""
LEAST_P = 0.01
ALPHABET = string.ascii_letters + string.digits + "-_"
MALFORMED = (
    "x",
    "%00",
    "a" * 500,
    "' OR 1=1 --",
    "💥",
    "null",
    "0",
    "{{callback_token}}",
    " ",
    "%",
    "A" * 5_000,
)

Guess = Callable[[], str]


@scenario("F21", "callbacks with tokens that are guessed, cut, another's, or none", stores=("sqlite",), gate=False)
def forged(arena: Arena) -> tuple[History, Verdict]:
    """Nothing is closed; every answer is the same 404, in the same time; and the true token still works."""
    arena.instances.start(1)
    verdict = Verdict()
    with Desk(arena) as desk:
        task = desk.task("forged", "silent", callback_timeout_sec=3_600)
        runs = [desk.pending(task) for _ in range(20)]
        answers = _guesses(arena, runs)
        _same(verdict, answers)
        _foreign(verdict, desk, runs, task)
        least = _timing(verdict, arena, runs[0].token)
        still = [run.run for run in runs if desk.run(run.run)["status"] != "CALLBACK_PENDING"]
        forbid(verdict, "I10: runs that a forged report ended", still)
        closed = [desk.report(run.token).json().get("accepted") for run in runs]
    history = arena.history()
    verdict.require(all(closed), "a true token did not work after all that")
    double = [run for run, times in (transitions(arena) | received(history)).items() if times != 1]
    verdict.figures |= {"n": len(answers), "forged": len(still), "duplicated": len(double), "least_p": least}
    return history, verdict


def _guesses(arena: Arena, runs: list[Pending]) -> list[httpx2.Response]:
    """Tokens that nobody has: by chance, nearly right, and malformed."""
    kinds: list[Guess] = [_by_chance, lambda: _nearly(arena.choose, runs), lambda: arena.choose.choice(MALFORMED)]
    base = arena.instances.bases()[0]
    with httpx2.Client(timeout=30) as client:
        return [
            client.post(f"{base}{CALLBACKS}/{quote(kinds[number % 3](), safe='%')}", json=SUCCESS)
            for number in range(GUESSES)
        ]


def _by_chance() -> str:
    return secrets.token_urlsafe(32)


def _nearly(choose: random.Random, runs: list[Pending]) -> str:
    """A true one with one letter changed, cut or added."""
    token = choose.choice(runs).token
    place = choose.randrange(1, len(token))
    other = choose.choice([letter for letter in ALPHABET if letter != token[place]])
    return choose.choice([token[:place] + other + token[place + 1 :], token[:place], token + other, token.swapcase()])


def _same(verdict: Verdict, answers: list[httpx2.Response]) -> None:
    """One answer for all, but for the number of the request."""
    bodies = {json.dumps(_told(answer), sort_keys=True) for answer in answers}
    statuses = {answer.status_code for answer in answers}
    verdict.require(statuses == {httpx2.codes.NOT_FOUND}, f"wrong tokens were answered {statuses}")
    verdict.require(len(bodies) == 1, f"wrong tokens got different answers: {sorted(bodies)[:3]}")


def _told(answer: httpx2.Response) -> dict[str, object]:
    return {name: value for name, value in answer.json().items() if name != "request_id"}


def _foreign(verdict: Verdict, desk: Desk, runs: list[Pending], task: int) -> None:
    """By ids: another task's run, or one that there is not, is not found either."""
    other = desk.task("other", "silent")
    for ids in ({"task_id": other, "run_id": runs[0].run}, {"task_id": task, "run_id": 999_999_999}):
        answer = desk.ask("POST", CALLBACKS, {**ids, **SUCCESS})
        verdict.require(answer.status_code == httpx2.codes.NOT_FOUND, f"{ids}: {answer.status_code} {answer.text}")


def _timing(verdict: Verdict, arena: Arena, token: str) -> float:
    """Whether a token that is nearly right takes another time than one by chance; the greatest p of the rounds."""
    nearly = token[:-1] + ("A" if token[-1] != "A" else "B")
    with httpx2.Client(base_url=arena.instances.bases()[0], timeout=30) as client:
        found = [_p_value(client, _by_chance, lambda: nearly) for _ in range(ROUNDS)]
    verdict.figures["p_values"] = [round(p, 3) for p in found]
    verdict.require(max(found) > LEAST_P, f"the time of the answer tells a near miss: p = {found}")
    return max(found)


def _p_value(client: httpx2.Client, one: Guess, other: Guess) -> float:
    """Welch's t-test, in turn so that both see the same load; the slowest tenth is the machine's and left out."""
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(SAMPLES):
        for kept, guess in zip(times, (one, other), strict=True):
            path = f"{CALLBACKS}/{guess()}"
            began = time.perf_counter()
            client.post(path, json=SUCCESS)
            kept.append(time.perf_counter() - began)
    first, second = (sorted(each)[: int(len(each) * 0.9)] for each in times)
    spread = statistics.variance(first) / len(first) + statistics.variance(second) / len(second)
    t = (statistics.fmean(first) - statistics.fmean(second)) / math.sqrt(spread)
    return math.erfc(abs(t) / math.sqrt(2))  # with thousands of them, the normal distribution will do
