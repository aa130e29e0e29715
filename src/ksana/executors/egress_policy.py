"""Where Ksana may connect to. Pure: addresses in, a reason to refuse or none out. The page is `docs/design/egress.md`."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

from ksana.domain.errors import InvalidInput

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network


class EgressMode(StrEnum):
    INTERNAL = "internal"  # loopback and private networks are targets like any other: Ksana's main work
    PUBLIC = "public"  # only what the whole internet can reach
    ALLOWLIST = "allowlist"  # only what is named


class Kind(StrEnum):
    """What an address is for, in the words that a refusal uses."""

    METADATA = "metadata"
    UNSPECIFIED = "unspecified"
    LINK_LOCAL = "link-local"
    MULTICAST = "multicast"
    BROADCAST = "broadcast"
    RESERVED = "reserved"
    TRANSLATED = "translated"  # NAT64, 6to4 and Teredo: an IPv4 address in disguise, judged by nobody on the way
    LOOPBACK = "loopback"
    PRIVATE = "private"
    SPECIAL = "special-purpose"  # documentation, benchmarks, protocol assignments: nobody's on the internet
    GLOBAL = "global"


METADATA_NAMES = frozenset({"metadata.google.internal", "metadata.goog"})
# AWS, GCP and Azure; AWS over IPv6; Alibaba; Azure's wire server; Oracle. All hand out credentials to whoever asks.
_METADATA = frozenset(
    ip_address(text) for text in ("169.254.169.254", "fd00:ec2::254", "100.100.100.200", "168.63.129.16", "192.0.0.192")
)
_TABLE: tuple[tuple[Kind, tuple[str, ...]], ...] = (
    (Kind.UNSPECIFIED, ("0.0.0.0/8", "::/128")),
    (Kind.LOOPBACK, ("127.0.0.0/8", "::1/128")),
    (Kind.LINK_LOCAL, ("169.254.0.0/16", "fe80::/10")),
    (Kind.BROADCAST, ("255.255.255.255/32",)),
    (Kind.MULTICAST, ("224.0.0.0/4", "ff00::/8")),
    (Kind.RESERVED, ("240.0.0.0/4",)),
    (Kind.TRANSLATED, ("64:ff9b::/96", "64:ff9b:1::/48", "2002::/16", "2001::/32")),
    (Kind.PRIVATE, ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "fc00::/7")),
    (
        Kind.SPECIAL,
        (
            *("192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24"),
            *("2001::/23", "2001:db8::/32", "3fff::/20"),
        ),
    ),
    # Of IPv6 only 2000::/3 has been given out: the rest is refused without being listed.
    (Kind.GLOBAL, ("0.0.0.0/0", "2000::/3")),
    (Kind.RESERVED, ("::/0",)),
)
_NETWORKS: tuple[tuple[Kind, Network], ...] = tuple(
    (kind, ip_network(text)) for kind, texts in _TABLE for text in texts
)
_NEVER_INTERNAL = frozenset(
    {
        *(Kind.METADATA, Kind.UNSPECIFIED, Kind.LINK_LOCAL, Kind.MULTICAST),
        *(Kind.BROADCAST, Kind.RESERVED, Kind.TRANSLATED),
    }
)
_NOT_LISTED = "not on the list of allowed targets"


@dataclass(frozen=True, slots=True)
class EgressPolicy:
    """Which targets may be called. `networks` and `hosts` count in the mode ALLOWLIST only; make one with `parse`."""

    mode: EgressMode = EgressMode.INTERNAL
    networks: tuple[Network, ...] = ()
    hosts: frozenset[str] = frozenset()

    @classmethod
    def parse(cls, mode: str = "internal", allow: Iterable[str] = (), *, field: str = "egress") -> "EgressPolicy":
        """From settings: `allow` holds addresses, networks and host names. InvalidInput names `field`."""
        if mode not in list(EgressMode):
            raise InvalidInput(field, f"must be one of {', '.join(EgressMode)}")
        networks: list[Network] = []
        hosts: set[str] = set()
        for entry in allow:
            network = _network(entry)
            if network is not None:
                networks.append(network)
            elif "/" in entry or ":" in entry or not entry.strip():
                raise InvalidInput(field, f"neither a network nor a host name: {entry!r}")
            else:
                hosts.add(plain_name(entry))
        return cls(EgressMode(mode), tuple(networks), frozenset(hosts))

    def classify(self, address: str | Address, *, host: str | None = None) -> str | None:
        """Why this address must not be connected to, or None if it may. `host` is the name that led to it, if one did."""
        judged = _judged(str(address))
        if judged is None:
            return "not an address"
        kind, plain = judged
        if self.mode is EgressMode.ALLOWLIST:
            return self._unlisted(kind, plain, host)
        if kind in _NEVER_INTERNAL or (self.mode is EgressMode.PUBLIC and kind is not Kind.GLOBAL):
            return f"{kind} address"
        return None

    def classify_host(self, host: str) -> str | None:
        """Why a name must not even be looked up, or None."""
        name = plain_name(host)
        if name in METADATA_NAMES and not (self.mode is EgressMode.ALLOWLIST and name in self.hosts):
            return "metadata service"
        if self.mode is EgressMode.ALLOWLIST and name not in self.hosts and not self.networks:
            return _NOT_LISTED
        return None

    def classify_socket(self, address: str) -> str | None:
        """The last look, when a socket is opened and the name is no longer known: any listed name may have led here."""
        if self.mode is not EgressMode.ALLOWLIST:
            return self.classify(address)
        reasons = [self.classify(address, host=host) for host in (None, *self.hosts)]
        return None if None in reasons else reasons[0]

    def _unlisted(self, kind: Kind, address: Address, host: str | None) -> str | None:
        name = plain_name(host) if host else None
        singly = any(network.num_addresses == 1 and address in network for network in self.networks)
        if singly or (name in METADATA_NAMES and name in self.hosts):
            return None
        if kind is Kind.METADATA:
            return f"{kind} address"
        if any(address in network for network in self.networks):
            return None
        if name not in self.hosts:
            return _NOT_LISTED
        # A name was listed, not where it leads: its owner must not be able to point it at our own link.
        return f"{kind} address" if kind in _NEVER_INTERNAL else None


def plain_name(host: str) -> str:
    """A host name as names are compared: in lower case, without the root's dot."""
    return host.strip().rstrip(".").lower()


@lru_cache(maxsize=4096)
def _judged(text: str) -> tuple[Kind, Address] | None:
    """The kind of an address, and the address itself: IPv4 if that is what an IPv6 form of it stands for."""
    try:
        address = ip_address(text)
    except ValueError:
        return None
    if isinstance(address, IPv6Address):
        if address.scope_id is not None:
            return Kind.LINK_LOCAL, address
        if address.ipv4_mapped is not None:
            address = address.ipv4_mapped
    if address in _METADATA or _carried(address) in _METADATA:
        return Kind.METADATA, address
    return next(kind for kind, network in _NETWORKS if address in network), address


def _carried(address: Address) -> Address | None:
    """The IPv4 address to which a translator on the way would turn this one."""
    if isinstance(address, IPv4Address):
        return None
    if address.sixtofour is not None:
        return address.sixtofour
    if address.teredo is not None:
        return address.teredo[1]
    # NAT64 and the old IPv4-compatible form have it in their last 32 bits; elsewhere a false alarm harms nobody.
    return IPv4Address(int(address) & 0xFFFFFFFF)


def _network(entry: str) -> Network | None:
    try:
        return ip_network(entry.strip(), strict=False)
    except ValueError:
        return None
