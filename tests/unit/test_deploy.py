"""What is shipped to deploy Ksana: it is whole, names only what there is, and has no password.

`docker build` and a cluster are not needed: the files are read as what they are.
"""

import re
import shutil
import subprocess
from collections.abc import Iterator
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml

from ksana.cli.app import app
from ksana.cli.process import LAST_ANSWERS, LAST_WRITES
from ksana.engine.engine import LAST_WORDS
from ksana.settings import load, settings_table

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
COMPOSE: dict[str, Any] = yaml.safe_load((DEPLOY / "docker-compose.yml").read_text())
INSTANCES = {name: each for name, each in COMPOSE["services"].items() if name.startswith("ksana")}
UNITS = ["ksana.service", "ksana-worker@.service"]
DOCKERFILE = (DEPLOY / "Dockerfile").read_text()
MANIFESTS = [
    document for path in sorted(DEPLOY.glob("kubernetes/*.yaml")) for document in yaml.safe_load_all(path.read_text())
]
DEPLOYMENTS = {each["metadata"]["name"]: each for each in MANIFESTS if each["kind"] == "Deployment"}
PORT = load().settings.server.port
UNTIL_THE_END = LAST_WORDS + LAST_WRITES + 2 * LAST_ANSWERS
"""How long Ksana may take after its grace, if its database answers nothing."""
GRACE = "KSANA_SERVER_GRACEFUL_TIMEOUT"


def container(deployment: dict[str, Any]) -> dict[str, Any]:
    (only,) = deployment["spec"]["template"]["spec"]["containers"]
    return dict(only)


def unit(name: str) -> dict[str, list[str]]:
    """The lines of a unit, by their name: a name may stand there more than once."""
    found: dict[str, list[str]] = {}
    for line in (DEPLOY / name).read_text().splitlines():
        if line and line[0] not in "#[":
            key, _, value = line.partition("=")
            found.setdefault(key, []).append(value)
    return found


def unit_environment(name: str) -> dict[str, str]:
    return dict(pair.split("=", 1) for line in unit(name)["Environment"] for pair in line.split())


def commands() -> Iterator[tuple[str, list[str]]]:
    """Every command line of Ksana that is shipped, without the program's name."""
    yield "Dockerfile", re.findall(r'"([^"]*)"', DOCKERFILE.rpartition("CMD")[2])
    for name, service in INSTANCES.items():
        yield name, service["command"]
    for name, deployment in DEPLOYMENTS.items():
        yield name, container(deployment)["args"]
    for name in UNITS:
        yield name, unit(name)["ExecStart"][0].split()[1:]


def environments() -> Iterator[tuple[str, dict[str, str | None]]]:
    """Every environment that is given to Ksana; None for what comes from elsewhere."""
    for name, service in INSTANCES.items():
        yield name, service["environment"]
    for name, deployment in DEPLOYMENTS.items():
        yield name, {each["name"]: each.get("value") for each in container(deployment)["env"]}
    for name in UNITS:
        yield name, dict(unit_environment(name))
    yield "Dockerfile", dict(re.findall(r"\b(KSANA_\w+)=(\S+)", DOCKERFILE))


def seconds(text: str) -> timedelta:
    return load(environ={GRACE: text}).settings.server.graceful_timeout


@pytest.mark.parametrize(("where", "words"), [pytest.param(*each, id=each[0]) for each in commands()])
def test_every_command_and_flag_is_one_of_ksanas(where: str, words: list[str]) -> None:
    command = app[words[0]]
    flags = {name for argument in command.assemble_argument_collection() for name in argument.names}
    assert {word for word in words[1:] if word.startswith("--")} <= flags, where
    # Whatever is no flag is the value of one.
    assert all(before.startswith("--") for before, word in pairwise(words) if not word.startswith("--")), where


@pytest.mark.parametrize(("where", "given"), [pytest.param(*each, id=each[0]) for each in environments()])
def test_every_variable_is_one_of_the_settings_and_takes_its_value(where: str, given: dict[str, str | None]) -> None:
    known = {variable for row in settings_table().values() for variable in row.env}
    ours = {name: value for name, value in given.items() if name.startswith("KSANA_")}
    assert ours
    assert set(ours) <= known, where
    # A password is never in them: what the shell puts in is letters and digits.
    filled = {name: re.sub(r"\$\{\w+:\?[^}]*\}", "abc123", value) for name, value in ours.items() if value}
    load(environ={name: value.replace("%S", "/var/lib").replace("%i", "x") for name, value in filled.items()})


def test_nothing_that_is_shipped_has_a_password() -> None:
    for path in (path for path in DEPLOY.rglob("*") if path.is_file()):
        text = path.read_text()
        passwords = re.findall(r"(?mi)^\s*(?:- )?\w*(?:password|secret_key)\w*\s*[:=]\s*(\S+)", text)
        passwords += re.findall(r"://[^/\s:@]*:([^@\s/]+)@", text)
        # From the environment, or what stands for one in an explanation.
        assert [each for each in passwords if not each.startswith("${") and each != "PASSWORD"] == [], path.name


def test_a_missing_password_stops_the_composition() -> None:
    text = (DEPLOY / "docker-compose.yml").read_text()
    used = re.findall(r"(?<!\$)\$\{(\w+)([^}]*)\}", "\n".join(line for line in text.splitlines() if "#" not in line))
    assert {name for name, _ in used} == {"KSANA_DB_PASSWORD", "KSANA_REDIS_PASSWORD"}
    assert all(rest.startswith(":?") for _, rest in used)


def test_the_secret_has_no_value_and_pods_wait_for_it() -> None:
    (secret,) = [each for each in MANIFESTS if each["kind"] == "Secret"]
    assert "data" not in secret
    assert "stringData" not in secret
    for deployment in DEPLOYMENTS.values():
        (database,) = [each for each in container(deployment)["env"] if each["name"] == "KSANA_DATABASE_URL"]
        wanted = database["valueFrom"]["secretKeyRef"]
        assert wanted["name"] == secret["metadata"]["name"]
        assert "optional" not in wanted


def test_ports_of_the_composition_are_on_loopback_alone() -> None:
    published = [port for service in COMPOSE["services"].values() for port in service.get("ports", ())]
    assert len(published) == len(INSTANCES) == 2
    assert all(re.fullmatch(rf"127\.0\.0\.1:\d+:{PORT}", port) for port in published)


def test_the_parts_of_the_composition_have_health_checks_and_wait_for_each_other() -> None:
    for name, service in COMPOSE["services"].items():
        assert service["healthcheck"]["test"], name
    for service in INSTANCES.values():
        assert service["depends_on"] == {each: {"condition": "service_healthy"} for each in ("db", "redis")}
        assert f"127.0.0.1:{PORT}/health" in service["healthcheck"]["test"][-1]
        assert service["build"]["dockerfile"] == "deploy/Dockerfile"
    assert {"ksana"} <= {alias for each in INSTANCES.values() for alias in each["networks"]["inside"]["aliases"]}


def test_whoever_stops_ksana_waits_for_its_end() -> None:
    for service in INSTANCES.values():
        assert seconds(service["stop_grace_period"]) >= seconds(service["environment"][GRACE]) + UNTIL_THE_END
    for name in UNITS:
        stop = timedelta(seconds=int(unit(name)["TimeoutStopSec"][0]))
        assert stop >= seconds(unit_environment(name)[GRACE]) + UNTIL_THE_END
    for deployment in DEPLOYMENTS.values():
        (grace,) = [each["value"] for each in container(deployment)["env"] if each["name"] == GRACE]
        before = container(deployment).get("lifecycle", {}).get("preStop", {"exec": {"command": ["sleep", "0"]}})
        pause = timedelta(seconds=int(before["exec"]["command"][1]))
        given = timedelta(seconds=deployment["spec"]["template"]["spec"]["terminationGracePeriodSeconds"])
        assert given >= pause + seconds(grace) + UNTIL_THE_END


@pytest.mark.parametrize("deployment", DEPLOYMENTS.values(), ids=DEPLOYMENTS)
def test_probes_ask_what_answers_what_they_want_to_know(deployment: dict[str, Any]) -> None:
    pod = container(deployment)
    assert pod["ports"] == [{"name": "http", "containerPort": PORT}]
    assert pod["args"][pod["args"].index("--port") + 1] == str(PORT)
    assert pod["readinessProbe"]["httpGet"] == {"path": "/health", "port": "http"}
    # Never one that the database can fail: an outage would restart them all.
    assert pod["livenessProbe"]["httpGet"] == {"path": "/api/v1/version", "port": "http"}
    assert pod["startupProbe"]["tcpSocket"] == {"port": "http"}


def test_the_manifests_fit_together() -> None:
    (service,) = [each for each in MANIFESTS if each["kind"] == "Service"]
    server = DEPLOYMENTS["ksana-server"]
    assert server["spec"]["replicas"] >= 2
    assert service["spec"]["selector"] == server["spec"]["selector"]["matchLabels"]
    assert service["spec"]["ports"][0]["port"] == PORT
    budgets = [each["spec"]["selector"] for each in MANIFESTS if each["kind"] == "PodDisruptionBudget"]
    for deployment in DEPLOYMENTS.values():
        spec = deployment["spec"]
        assert spec["template"]["metadata"]["labels"] == spec["selector"]["matchLabels"]
        assert spec["selector"] in budgets
    (kustomization,) = [each for each in MANIFESTS if each["kind"] == "Kustomization"]
    shipped = {path.name for path in DEPLOY.glob("kubernetes/*.yaml")}
    assert set(kustomization["resources"]) == shipped - {"kustomization.yaml", "secret.example.yaml"}


def test_the_image_is_made_of_files_that_are_there_and_runs_without_rights() -> None:
    for line in re.findall(r"(?m)^COPY (?!--from)(.*)$", DOCKERFILE):
        *sources, _ = line.split()
        assert all((ROOT / source).exists() for source in sources), line
    assert DOCKERFILE.count("pip install") == DOCKERFILE.count("--require-hashes") + DOCKERFILE.count("dist/*.whl")
    assert re.findall(r"(?m)^USER (.*)$", DOCKERFILE) == ["7100:7100"]
    for deployment in DEPLOYMENTS.values():
        assert deployment["spec"]["template"]["spec"]["securityContext"]["runAsUser"] == 7100
    kept = (DEPLOY / "Dockerfile.dockerignore").read_text()
    assert re.search(r"(?m)^\*$", kept)


@pytest.mark.parametrize("name", UNITS)
def test_a_unit_keeps_ksana_running_and_apart(name: str) -> None:
    lines = unit(name)
    assert lines["Restart"] == ["always"]
    assert lines["KillMode"] == ["mixed"]
    assert lines["DynamicUser"] == ["yes"]
    assert unit_environment(name)["KSANA_DATA_DIR"] == f"%S/{lines['StateDirectory'][0]}"
    assert lines["StateDirectoryMode"] == ["0700"]


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")
@pytest.mark.parametrize("name", UNITS)
def test_systemd_understands_a_unit(name: str, tmp_path: Path) -> None:
    copy = tmp_path / name
    # It asks whether the program is there, and it is not on this machine.
    copy.write_text((DEPLOY / name).read_text().replace("/opt/ksana/bin/ksana", "/bin/sh"))
    told = subprocess.run(["systemd-analyze", "verify", str(copy)], capture_output=True, text=True, check=False)
    assert not [line for line in told.stderr.splitlines() if name.partition("@")[0] in line], told.stderr
