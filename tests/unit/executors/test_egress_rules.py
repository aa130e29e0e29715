"""Which URLs and headers may be saved and sent."""

import pytest

from ksana.domain.errors import InvalidInput
from ksana.executors.egress_policy import EgressPolicy
from ksana.executors.egress_rules import MAX_HEADERS, checked_headers, checked_url

INTERNAL = EgressPolicy()


@pytest.mark.parametrize(
    ("written", "sent"),
    [
        ("http://example.com", "http://example.com"),
        ("HTTPS://Example.COM:8443/a?b=1", "https://example.com:8443/a?b=1"),
        ("http://127.0.0.1:9/x#part", "http://127.0.0.1:9/x"),
        ("http://[::1]:9/x", "http://[::1]:9/x"),
        ("http://svc_one.internal/a b", "http://svc_one.internal/a%20b"),
        ("http://bücher.example/", "http://xn--bcher-kva.example/"),
        ("http://h/%2F?q=a%2Bb", "http://h/%2F?q=a%2Bb"),
    ],
)
def test_a_url_is_sent_without_its_fragment(written: str, sent: str) -> None:
    assert str(checked_url(written, INTERNAL)) == sent


@pytest.mark.parametrize(
    ("written", "complaint"),
    [
        ("", "whole address"),
        ("example.com/x", "whole address"),
        ("http://", "valid host"),
        ("http:///path", "valid host"),
        ("http://:80/", "whole address"),
        ("http://a b/", "whole address"),
        ("http://h\\@evil/", "whole address"),
        ("http://h:99999/", "whole address"),
        ("http://h:0/", "port 0"),
        ("ftp://h/", "http:// or https://"),
        ("file:///etc/passwd", "http:// or https://"),
        ("gopher://h/", "http:// or https://"),
        ("http://user@h/", "user or password"),
        ("http://user:pw@h/", "user or password"),
        ("http://:pw@h/", "user or password"),
        ("http://h/\r\nX: y", "control characters"),
        ("http://h/" + "x" * 9000, "longer than"),
        ("http://a%2eb/", "valid host"),
        ("http://[fe80::1%25eth0]/", "not allowed as a target: link-local address"),
        ("http://169.254.169.254/latest/meta-data", "not allowed as a target: metadata address"),
        ("http://[::ffff:a9fe:a9fe]/", "not allowed as a target: metadata address"),
        ("http://0.0.0.0/", "not allowed as a target: unspecified address"),
        ("http://metadata.google.internal./", "not allowed as a target: metadata service"),
    ],
)
def test_a_url_that_must_not_be_called_is_refused_with_the_reason(written: str, complaint: str) -> None:
    with pytest.raises(InvalidInput, match=complaint) as refused:
        checked_url(written, INTERNAL)
    assert refused.value.field == "url"


@pytest.mark.parametrize(
    "host",
    [
        *(
            "127.1",
            "0x7f.1",
            "0x7f.0.0.1",
            "2130706433",
            "0x7f000001",
            "017700000001",
            "0177.0.0.1",
            "127.0.0.1.",
            "127.0.1",
        ),
        *("0", "0xa9fea9fe", "2852039166", "0xA9.0xFE.0xA9.0xFE", "1.2.3.4.5", "256.1.1.1", "0x"),
    ],
)
def test_an_address_in_disguise_is_refused_under_every_policy(host: str) -> None:
    for policy in (INTERNAL, EgressPolicy.parse("public"), EgressPolicy.parse("allowlist", ["0.0.0.0/0"])):
        with pytest.raises(InvalidInput, match="four plain numbers"):
            checked_url(f"http://{host}/", policy)


def test_digits_of_other_scripts_are_read_as_what_they_stand_for() -> None:
    with pytest.raises(InvalidInput, match="metadata address"):
        checked_url("http://\uff11\uff16\uff19.254.169\u3002254/", INTERNAL)


def test_the_public_policy_refuses_loopback_when_it_is_saved() -> None:
    with pytest.raises(InvalidInput, match="loopback"):
        checked_url("http://127.0.0.1/", EgressPolicy.parse("public"))


@pytest.mark.parametrize(
    "name",
    [
        *(
            "Host",
            "content-length",
            "Transfer-Encoding",
            "Connection",
            "Upgrade",
            "Expect",
            "X-Ksana-Run-Id",
            "x-ksana-other",
        ),
        *("Metadata", "Metadata-Flavor", "X-aws-ec2-metadata-token", "X-aws-ec2-metadata-token-ttl-seconds"),
    ],
)
def test_headers_that_frame_the_message_or_open_metadata_services_are_refused(name: str) -> None:
    with pytest.raises(InvalidInput, match="must not be set by a job") as refused:
        checked_headers({name: "x"})
    assert refused.value.field == f"headers.{name}"


@pytest.mark.parametrize("value", ["a\r\nX-Evil: 1", "a\nb", "a\rb", "a\0b", "a\x1bb", "a\x7f", "\ud800"])
def test_a_header_cannot_break_out_of_its_line(value: str) -> None:
    with pytest.raises(InvalidInput, match="line breaks"):
        checked_headers({"X-A": value})


@pytest.mark.parametrize("name", ["", "X A", "X:A", "X\r\nA", "Ä", "X\0"])
def test_a_header_needs_a_name_that_is_one(name: str) -> None:
    with pytest.raises(InvalidInput, match="not the name of a header"):
        checked_headers({name: "x"})


def test_headers_are_bounded_and_unique() -> None:
    checked_headers({f"X-{number}": "v" for number in range(MAX_HEADERS)})
    with pytest.raises(InvalidInput, match="more than 64"):
        checked_headers({f"X-{number}": "v" for number in range(MAX_HEADERS + 1)})
    with pytest.raises(InvalidInput, match="larger than"):
        checked_headers({"X-Long": "ä" * 10_000})
    with pytest.raises(InvalidInput, match="twice"):
        checked_headers({"X-A": "1", "x-a": "2"})
