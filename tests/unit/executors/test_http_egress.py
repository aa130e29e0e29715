"""Where requests go and where they must not: names, addresses, redirects, TLS, proxies, cookies."""

import shutil
import socket
import ssl
import subprocess
from pathlib import Path
from urllib.parse import quote

import pytest
from tests.unit.executors.attempts import TOKEN, attempt
from tests.unit.executors.conftest import MakeExecutor
from tests.unit.executors.raw_server import raw_server, says
from tests.unit.executors.witness import Witness, witness_on_loopback

from ksana.domain.job import ExecutionMode
from ksana.domain.outcome import Failed, Outcome, Succeeded
from ksana.executors.egress_dial import Dialler, tls_context
from ksana.executors.egress_errors import Denied
from ksana.executors.egress_names import CheckedNames
from ksana.executors.egress_policy import EgressPolicy
from ksana.executors.http import HttpExecutor

CREDENTIALS = ("authorization", "x-authorization", "cookie", "x-api-key", "api-key", "apikey", "x-auth-key")


class Names:
    """A name server that answers every name with the next of these lists of addresses, and stays at the last."""

    def __init__(self, *answers: list[str]) -> None:
        self._answers = list(answers)
        self.asked: list[str] = []

    async def resolve(self, host: str, _port: int, /) -> list[str]:
        self.asked.append(host)
        return self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]

    async def close(self) -> None:
        pass


class NoNames(Names):
    """A name server that knows no name."""

    def __init__(self, number: int) -> None:
        super().__init__([])
        self._number = number

    async def resolve(self, host: str, port: int, /) -> list[str]:
        raise socket.gaierror(self._number, f"{host}:{port}")


def denied(outcome: Outcome, host: str) -> None:
    """The outcome says no more than that this host, as the job names it, is not allowed."""
    assert isinstance(outcome, Failed), outcome
    assert outcome.error == f"{host} is not allowed as a target"
    assert not outcome.retryable
    assert outcome.evidence.response_code is None


async def test_a_name_leads_to_the_address_that_was_checked(make_executor: MakeExecutor, witness: Witness) -> None:
    names = Names(["127.0.0.1"])
    outcome = await make_executor(names).execute(attempt({"url": witness.url(host="billing.internal")}))
    assert isinstance(outcome, Succeeded)
    assert witness.seen[0].header("host") == f"billing.internal:{witness.port}"
    assert names.asked == ["billing.internal"]


@pytest.mark.parametrize(
    ("number", "told"),
    [
        (socket.EAI_NONAME, "there is no host nobody.example"),
        (socket.EAI_AGAIN, "the name nobody.example could not be looked up"),
    ],
)
async def test_a_name_that_leads_nowhere_may_be_tried_again(
    make_executor: MakeExecutor, number: int, told: str
) -> None:
    outcome = await make_executor(NoNames(number)).execute(attempt({"url": "http://nobody.example/"}))
    assert isinstance(outcome, Failed)
    assert outcome.error == told
    assert outcome.retryable


async def test_localhost_is_a_target_like_any_other(http: HttpExecutor, witness: Witness) -> None:
    assert isinstance(await http.execute(attempt({"url": witness.url(host="localhost")})), Succeeded)


@pytest.mark.parametrize(
    "addresses",
    [
        ["169.254.169.254"],
        ["127.0.0.1", "169.254.169.254"],
        ["169.254.169.254", "127.0.0.1"],
        ["127.0.0.1", "::ffff:169.254.169.254"],
        ["127.0.0.1", "0.0.0.0"],
        ["64:ff9b::7f00:1"],
    ],
)
async def test_one_bad_address_among_good_ones_denies_the_name(
    make_executor: MakeExecutor, witness: Witness, addresses: list[str]
) -> None:
    outcome = await make_executor(Names(addresses)).execute(attempt({"url": witness.url(host="rebound.example")}))
    denied(outcome, "rebound.example")
    assert not witness.seen
    for address in addresses:
        assert address not in repr(outcome)


async def test_a_name_that_changes_its_mind_is_checked_anew(make_executor: MakeExecutor, witness: Witness) -> None:
    http = make_executor(Names(["127.0.0.1"], ["169.254.169.254"]))
    assert isinstance(await http.execute(attempt({"url": witness.url(host="flips.example")})), Succeeded)
    outcome = await http.execute(attempt({"url": f"http://flips.example:{witness.port + 1}/"}))
    denied(outcome, "flips.example")


async def test_the_public_policy_denies_a_name_that_leads_inside(make_executor: MakeExecutor, witness: Witness) -> None:
    http = make_executor(Names(["127.0.0.1"]), policy=EgressPolicy.parse("public"))
    denied(await http.execute(attempt({"url": witness.url(host="inside.example")})), "inside.example")
    assert not witness.seen


async def test_an_allowlist_lets_a_listed_name_pass_and_no_other(make_executor: MakeExecutor, witness: Witness) -> None:
    policy = EgressPolicy.parse("allowlist", ["billing.internal", "10.0.0.0/8"])
    http = make_executor(Names(["127.0.0.1"]), policy=policy)
    assert isinstance(await http.execute(attempt({"url": witness.url(host="billing.internal")})), Succeeded)
    denied(await http.execute(attempt({"url": witness.url(host="other.internal")})), "other.internal")


@pytest.mark.parametrize("host", ["169.254.169.254", "[::ffff:a9fe:a9fe]", "0.0.0.0", "metadata.google.internal"])
async def test_a_job_saved_under_another_policy_is_stopped_when_it_runs(http: HttpExecutor, host: str) -> None:
    outcome = await http.execute(attempt({"url": f"http://{host}/"}))
    assert isinstance(outcome, Failed)
    assert "is not allowed as a target" in outcome.error
    assert not outcome.retryable


@pytest.mark.parametrize("host", ["127.1", "0x7f.1", "2130706433", "0x7f000001", "0177.0.0.1"])
async def test_an_address_in_disguise_is_not_called(http: HttpExecutor, witness: Witness, host: str) -> None:
    outcome = await http.execute(attempt({"url": witness.url(host=host)}))
    assert isinstance(outcome, Failed)
    assert not outcome.retryable
    assert not witness.seen


def test_no_socket_is_opened_for_a_denied_address() -> None:
    policy = EgressPolicy.parse("public")
    dialler = Dialler(policy, CheckedNames(policy, Names([])))
    for address in ("127.0.0.1", "10.0.0.1", "169.254.169.254", "::1", "::ffff:10.0.0.1"):
        with pytest.raises(Denied):
            dialler.open_socket(address)


async def test_a_redirect_is_not_followed_unless_asked(http: HttpExecutor, witness: Witness) -> None:
    outcome = await http.execute(attempt({"url": witness.url("/redirect/302?to=/ok")}))
    assert isinstance(outcome, Failed)
    assert outcome.error == "answered 302"
    assert not outcome.retryable
    assert outcome.evidence.response_headers["Location"] == "/ok"
    assert len(witness.seen) == 1


@pytest.mark.parametrize(
    ("status", "method", "followed", "body"),
    [
        (301, "POST", "GET", b""),
        (302, "POST", "GET", b""),
        (302, "PUT", "PUT", b"body"),
        (303, "PUT", "GET", b""),
        (307, "POST", "POST", b"body"),
        (308, "POST", "POST", b"body"),
    ],
)
async def test_a_redirect_is_followed_as_browsers_do(
    http: HttpExecutor, witness: Witness, status: int, method: str, followed: str, body: bytes
) -> None:
    start = witness.url(f"/redirect/{status}?to=/echo")
    config = {
        "url": start,
        "method": method,
        "body": "body",
        "follow_redirects": True,
        "headers": {"Authorization": "me"},
    }
    outcome = await http.execute(attempt(config))
    assert isinstance(outcome, Succeeded)
    last = witness.seen[-1]
    assert (last.method, last.target, last.body) == (followed, "/echo", body)
    assert last.header("authorization") == "me"
    assert outcome.evidence.request["url"] == witness.url("/echo")
    assert outcome.evidence.request["redirected_from"] == [start]


async def test_another_origin_is_sent_no_credentials(http: HttpExecutor, witness: Witness) -> None:
    async with witness_on_loopback() as other:
        config = {
            "url": witness.url(f"/redirect/307?to={quote(other.url('/ok'))}"),
            "method": "POST",
            "body": "b",
            "follow_redirects": True,
            "headers": {**dict.fromkeys(CREDENTIALS, "x"), "X-Plain": "p", "X-Sort-Key": "k"},
        }
        outcome = await http.execute(attempt(config))
        assert isinstance(outcome, Succeeded)
        names = {name.lower() for name, _ in other.seen[0].headers}
        assert names.isdisjoint({*CREDENTIALS, "x-ksana-callback-url", "x-ksana-callback-token"})
        assert TOKEN not in str(other.seen[0].headers)
        assert other.seen[0].header("x-plain") == "p"
        assert other.seen[0].header("x-sort-key") == "k"
        assert other.seen[0].header("host") == f"127.0.0.1:{other.port}"


@pytest.mark.parametrize(
    ("to", "complaint"),
    [
        ("http://169.254.169.254/latest", "not allowed as a target: metadata address"),
        ("http://2130706433/", "four plain numbers"),
        ("file:///etc/passwd", "must begin with http"),
        ("http://user:pw@127.0.0.1/", "user or password"),
        ("http://[broken/", "cannot be followed"),
    ],
)
async def test_every_hop_is_checked(http: HttpExecutor, witness: Witness, to: str, complaint: str) -> None:
    config = {"url": witness.url(f"/redirect/302?to={quote(to)}"), "follow_redirects": True}
    outcome = await http.execute(attempt(config))
    assert isinstance(outcome, Failed)
    assert complaint in outcome.error
    assert not outcome.retryable
    assert outcome.evidence.response_code == 302


async def test_three_hops_are_followed_and_no_more(http: HttpExecutor, witness: Witness) -> None:
    def hops(number: int) -> str:
        return f"/redirect/302?to={quote(hops(number - 1))}" if number else "/ok"

    three, four = ({"url": witness.url(hops(number)), "follow_redirects": True} for number in (3, 4))
    assert isinstance(await http.execute(attempt(three)), Succeeded)
    outcome = await http.execute(attempt(four))
    assert isinstance(outcome, Failed)
    assert outcome.error == "redirected more than 3 times"
    assert not outcome.retryable


async def test_proxies_of_the_environment_are_not_used(
    http: HttpExecutor, witness: Witness, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    assert isinstance(await http.execute(attempt({"url": witness.url()})), Succeeded)


async def test_cookies_are_not_kept(http: HttpExecutor, witness: Witness) -> None:
    witness.answer_headers["Set-Cookie"] = "sid=1; Path=/"
    for _ in range(2):
        await http.execute(attempt({"url": witness.url(host="localhost")}))
    assert witness.seen[1].header("cookie") is None


def test_tls_is_verified_and_modern() -> None:
    context = tls_context()
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert context.check_hostname
    assert context.minimum_version >= ssl.TLSVersion.TLSv1_2


@pytest.mark.skipif(shutil.which("openssl") is None, reason="makes a certificate with openssl")
async def test_a_certificate_that_nobody_vouches_for_is_refused(http: HttpExecutor, tmp_path: Path) -> None:
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    made = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    subprocess.run(
        [*made, "-subj", "/CN=localhost", "-keyout", key, "-out", certificate], check=True, capture_output=True
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    async with witness_on_loopback(tls=context) as witness:
        outcome = await http.execute(attempt({"url": witness.url(host="localhost").replace("http:", "https:")}))
        assert isinstance(outcome, Failed)
        assert outcome.error.startswith(f"the certificate of localhost:{witness.port} is not valid: self")
        assert not witness.seen


async def test_another_origin_never_sees_a_callback_token(http: HttpExecutor, witness: Witness) -> None:
    async with witness_on_loopback() as other:
        config = {
            "url": witness.url(f"/redirect/307?to={quote(other.url('/ok'))}"),
            "method": "POST",
            "follow_redirects": True,
        }
        outcome = await http.execute(attempt(config, mode=ExecutionMode.ASYNC))
        assert isinstance(outcome, Failed)
        assert "another origin" in outcome.error
        assert other.seen == []


async def test_what_a_target_repeats_of_our_secrets_is_hidden_in_the_output_too(
    http: HttpExecutor, witness: Witness
) -> None:
    config = {"url": witness.url("/echo"), "headers": {"Authorization": "Bearer supersecretvalue123"}}
    outcome = await http.execute(attempt(config))
    assert isinstance(outcome, Succeeded)
    assert "supersecretvalue123" not in str(outcome)


@pytest.mark.parametrize("spelled", [r"k3y\/with+both==", r"k3y/with\u002Bboth==", "k3y%2Fwith%2Bboth%3D%3D"])
async def test_a_secret_is_hidden_however_a_target_spells_it(http: HttpExecutor, spelled: str) -> None:
    body = f'{{"got": "{spelled}"}}'.encode()
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body)
    async with raw_server(says(head + body)) as server:
        config = {"url": f"http://127.0.0.1:{server.port}/", "headers": {"Authorization": "Bearer k3y/with+both=="}}
        outcome = await http.execute(attempt(config))
    assert isinstance(outcome, Succeeded)
    assert (outcome.output, outcome.evidence.response_body) == ({"got": "***"}, '{"got": "***"}')
