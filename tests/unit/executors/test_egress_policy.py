"""Which addresses may be connected to."""

from ipaddress import ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ksana.domain.errors import InvalidInput
from ksana.executors.egress_policy import EgressMode, EgressPolicy

INTERNAL = EgressPolicy()
PUBLIC = EgressPolicy.parse("public")

NOWHERE = [
    ("169.254.169.254", "metadata address"),
    ("fd00:ec2::254", "metadata address"),
    ("::ffff:169.254.169.254", "metadata address"),
    ("64:ff9b::a9fe:a9fe", "metadata address"),
    ("2002:a9fe:a9fe::1", "metadata address"),
    ("100.100.100.200", "metadata address"),
    ("168.63.129.16", "metadata address"),
    ("192.0.0.192", "metadata address"),
    ("0.0.0.0", "unspecified address"),
    ("0.1.2.3", "unspecified address"),
    ("::", "unspecified address"),
    ("::ffff:0.0.0.0", "unspecified address"),
    ("169.254.0.1", "link-local address"),
    ("169.254.170.2", "link-local address"),
    ("fe80::1", "link-local address"),
    ("fe80::1%eth0", "link-local address"),
    ("febf::1", "link-local address"),
    ("224.0.0.1", "multicast address"),
    ("239.255.255.250", "multicast address"),
    ("ff02::1", "multicast address"),
    ("255.255.255.255", "broadcast address"),
    ("240.0.0.1", "reserved address"),
    ("::7f00:1", "reserved address"),
    ("fec0::1", "reserved address"),
    ("4000::1", "reserved address"),
    ("64:ff9b::808:808", "translated address"),
    ("64:ff9b:1::1", "translated address"),
    ("2002:7f00:1::", "translated address"),
    ("2001:0:4136:e378:8000:63bf:3fff:fdd2", "translated address"),
    ("not an address", "not an address"),
    ("127.1", "not an address"),
    ("", "not an address"),
]
INTERNAL_ONLY = [
    ("127.0.0.1", "loopback address"),
    ("127.255.255.254", "loopback address"),
    ("::1", "loopback address"),
    ("::ffff:127.0.0.1", "loopback address"),
    ("10.0.0.1", "private address"),
    ("172.16.0.1", "private address"),
    ("172.31.255.255", "private address"),
    ("192.168.1.1", "private address"),
    ("::ffff:192.168.1.1", "private address"),
    ("100.64.0.1", "private address"),
    ("100.127.255.255", "private address"),
    ("fd12:3456::1", "private address"),
    ("192.0.2.1", "special-purpose address"),
    ("198.18.0.1", "special-purpose address"),
    ("2001:db8::1", "special-purpose address"),
]
ANYWHERE = ["8.8.8.8", "1.1.1.1", "172.32.0.1", "100.128.0.1", "2606:4700::1111", "::ffff:8.8.8.8", "2a00:1450::1"]


@pytest.mark.parametrize(("address", "reason"), NOWHERE)
def test_no_policy_but_an_allowlist_lets_these_pass(address: str, reason: str) -> None:
    assert INTERNAL.classify(address) == reason
    assert PUBLIC.classify(address) == reason


@pytest.mark.parametrize(("address", "reason"), INTERNAL_ONLY)
def test_the_internal_policy_lets_private_targets_pass_and_the_public_one_does_not(address: str, reason: str) -> None:
    assert INTERNAL.classify(address) is None
    assert PUBLIC.classify(address) == reason


@pytest.mark.parametrize("address", ANYWHERE)
def test_what_the_internet_can_reach_is_allowed_everywhere_but_under_an_allowlist(address: str) -> None:
    assert INTERNAL.classify(address) is None
    assert PUBLIC.classify(address) is None
    assert EgressPolicy.parse("allowlist").classify(address) == "not on the list of allowed targets"


@given(st.ip_addresses())
def test_public_never_allows_what_internal_denies(address: object) -> None:
    if INTERNAL.classify(str(address)) is not None:
        assert PUBLIC.classify(str(address)) is not None


@given(st.ip_addresses(v=4))
def test_an_ipv4_address_is_judged_alike_in_its_ipv6_form(address: object) -> None:
    for policy in (INTERNAL, PUBLIC):
        assert policy.classify(f"::ffff:{address}") == policy.classify(str(address))


@given(st.ip_addresses())
def test_the_public_policy_allows_nothing_that_python_knows_to_be_private(address: object) -> None:
    known = ip_address(str(address))
    if known.is_private or known.is_loopback or known.is_multicast or known.is_link_local:
        assert PUBLIC.classify(known) is not None


def test_an_allowlist_names_networks_addresses_and_hosts() -> None:
    policy = EgressPolicy.parse("allowlist", ["10.1.0.0/16", "192.168.0.7", "fd00::/8", "Billing.Internal."])
    assert policy.mode is EgressMode.ALLOWLIST
    assert policy.classify("10.1.2.3") is None
    assert policy.classify("::ffff:10.1.2.3") is None
    assert policy.classify("192.168.0.7") is None
    assert policy.classify("192.168.0.8") == "not on the list of allowed targets"
    assert policy.classify("10.2.0.1", host="billing.internal") is None
    assert policy.classify("10.2.0.1", host="other.internal") == "not on the list of allowed targets"


def test_a_listed_host_must_not_lead_to_our_own_link() -> None:
    policy = EgressPolicy.parse("allowlist", ["billing.internal"])
    assert policy.classify("169.254.0.9", host="billing.internal") == "link-local address"
    assert policy.classify("169.254.169.254", host="billing.internal") == "metadata address"


def test_metadata_is_denied_even_within_a_listed_network_unless_it_is_named_singly() -> None:
    wide = EgressPolicy.parse("allowlist", ["0.0.0.0/0", "::/0"])
    assert wide.classify("169.254.0.9") is None
    assert wide.classify("169.254.169.254") == "metadata address"
    assert wide.classify("64:ff9b::a9fe:a9fe") == "metadata address"
    assert wide.classify("fd00:ec2::254") == "metadata address"
    assert EgressPolicy.parse("allowlist", ["169.254.169.254"]).classify("169.254.169.254") is None


def test_the_metadata_services_are_denied_by_name_too() -> None:
    for policy in (INTERNAL, PUBLIC, EgressPolicy.parse("allowlist", ["0.0.0.0/0"])):
        assert policy.classify_host("metadata.google.internal") == "metadata service"
        assert policy.classify_host("METADATA.google.internal.") == "metadata service"
    named = EgressPolicy.parse("allowlist", ["metadata.google.internal"])
    assert named.classify_host("metadata.google.internal") is None
    assert named.classify("169.254.169.254", host="metadata.google.internal") is None


def test_an_allowlist_of_hosts_alone_looks_up_no_other_name() -> None:
    policy = EgressPolicy.parse("allowlist", ["billing.internal"])
    assert policy.classify_host("billing.internal") is None
    assert policy.classify_host("example.com") == "not on the list of allowed targets"


def test_a_socket_may_go_where_any_listed_name_could_lead() -> None:
    policy = EgressPolicy.parse("allowlist", ["billing.internal"])
    assert policy.classify_socket("10.0.0.1") is None
    assert policy.classify_socket("169.254.169.254") is not None
    assert EgressPolicy.parse("allowlist", ["10.0.0.0/8"]).classify_socket("192.168.0.1") is not None
    assert PUBLIC.classify_socket("127.0.0.1") == "loopback address"


@pytest.mark.parametrize(("mode", "allow"), [("open", []), ("allowlist", ["10.0.0.0/99"]), ("allowlist", [" "])])
def test_a_policy_that_cannot_be_read_is_refused(mode: str, allow: list[str]) -> None:
    with pytest.raises(InvalidInput) as refused:
        EgressPolicy.parse(mode, allow, field="egress.allow")
    assert refused.value.field == "egress.allow"
