"""Addresses in the settings: databases (also as a Go DSN), Redis, HTTP. No message ever holds a password."""

import re
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit, urlunsplit

from ksana.domain.errors import InvalidInput
from ksana.settings.values import Parser

MASK = "***"
SERVERS = {"postgresql": 5432, "mysql": 3306}
_SYNONYMS = {"postgres": "postgresql", "mariadb": "mysql"}
_SECRET_OPTIONS = frozenset({"password", "passwd", "sslpassword"})
_FORMS = "sqlite:///path, json://path, postgresql://user:password@host/name or mysql://user:password@host/name"
_ENCODE = "percent-encode special characters in the user name and the password (@ is %40, / is %2F)"
_DSN = re.compile(
    r"(?:(?P<user>[^:/]*?)(?::(?P<password>.*))?@)?(?:(?P<net>[a-z]+)(?:\((?P<address>[^)]*)\))?)?"
    r"/(?P<name>[^/?]*)(?:\?(?P<options>.*))?"
)
# Options of the Go driver that say how Go talks to MySQL, which this driver settles by itself.
_GO_ONLY = frozenset(
    {"charset", "collation", "parsetime", "loc", "timeout", "readtimeout", "writetimeout", "multistatements"}
    | {"interpolateparams", "checkconnliveness", "allownativepasswords", "clientfoundrows", "columnswithalias"}
    | {"maxallowedpacket", "rejectreadonly", "timetruncate"}
)


def masked(url: str) -> str:
    """The address without its password: what may be shown."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return MASK
    user, found, _ = parts.netloc.rpartition("@")
    netloc = f"{user.split(':')[0]}:{MASK}@{parts.netloc[len(user) + 1 :]}" if found and ":" in user else parts.netloc
    options = [
        (k, MASK if k.lower() in _SECRET_OPTIONS else v) for k, v in parse_qsl(parts.query, keep_blank_values=True)
    ]
    path = parts.path if parts.netloc or not parts.path.startswith("/") else f"//{parts.path}"
    return urlunsplit((parts.scheme, netloc, path, urlencode(options, safe="*/"), ""))


def endpoint(url: str) -> str:
    """`host:port` of a database server, or the file of an embedded one: how messages name it."""
    if url.startswith("json://"):
        return url.removeprefix("json://")
    parts = urlsplit(url)
    if parts.scheme not in SERVERS:
        return parts.path.removeprefix("/")
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
    return f"{host}:{parts.port or SERVERS[parts.scheme]}"


def _database_url(value: object, field: str) -> str:
    scheme, separator, rest = value.partition("://") if isinstance(value, str) else ("", "", "")
    scheme = _SYNONYMS.get(scheme.strip().lower(), scheme.strip().lower())
    if not separator:
        raise InvalidInput(field, f"not a database address: write it as {_FORMS}")
    if scheme == "json":
        return _json(rest, field)
    if scheme == "sqlite":
        return _sqlite(rest, field)
    if scheme in SERVERS:
        return _server(f"{scheme}://{rest.strip()}", field)
    raise InvalidInput(field, f"{scheme!r} databases are not supported: use {_FORMS}")


def _sqlite(rest: str, field: str) -> str:
    path = rest.strip()
    if not path.startswith("/") or path == "/" or path.endswith("/"):
        raise InvalidInput(field, "must name a file: sqlite:///relative/path.db or sqlite:////absolute/path.db")
    if path == "/:memory:" or "?" in path or "#" in path or "\0" in path:
        raise InvalidInput(field, "must name a file, without options: an in-memory database would keep nothing")
    return f"sqlite://{path}"


def _json(rest: str, field: str) -> str:
    """What follows `json://` is the path, as it stands: of a .json file, or of the folder that holds jobs.json."""
    path = rest.strip()
    if not path.strip("/") or any(mark in path for mark in "?#\0"):
        told = "must name a file or a folder, without options: json://relative/jobs.json or json:///absolute/jobs.json"
        raise InvalidInput(field, told)
    return f"json:///{path.lstrip('/')}" if path.startswith("/") else f"json://{path}"


def _server(url: str, field: str) -> str:
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise InvalidInput(field, f"not a database address: its host or port cannot be read; {_ENCODE}") from None
    if not host or port == 0:
        raise InvalidInput(field, f"names no host: write it as {_FORMS}")
    if parts.fragment or "@" in parts.path or parts.netloc.count("@") > 1:
        raise InvalidInput(field, f"not a database address: {_ENCODE}")
    name = parts.path.removeprefix("/")
    if not name or "/" in name:
        raise InvalidInput(field, "must end with the name of the database, as in postgresql://user:password@host/ksana")
    return url


def _go_dsn(value: object, field: str) -> str:
    """Document 003's `user:password@tcp(host:port)/name?options` as a mysql:// address."""
    if isinstance(value, str) and "://" in value:
        return _database_url(value, field)
    found = _DSN.fullmatch(value.strip()) if isinstance(value, str) else None
    if not found or not found["name"]:
        raise InvalidInput(field, "not a MySQL DSN: write it as user:password@tcp(host:3306)/name")
    login = quote(unquote(found["user"] or ""), safe="")
    if found["password"] is not None:
        login += f":{quote(found['password'], safe='')}"
    place, options = _go_address(found["net"] or "tcp", found["address"] or "", field)
    _check_go_options(found["options"] or "", field)
    return _server(f"mysql://{login}{'@' if login else ''}{place}/{found['name']}{options}", field)


def _go_address(net: str, address: str, field: str) -> tuple[str, str]:
    if net == "tcp":
        return address or "127.0.0.1:3306", ""
    if net == "unix" and address:
        return "localhost", f"?unix_socket={quote(address)}"
    raise InvalidInput(field, "the network must be tcp(host:port) or unix(/path/of/the/socket)")


def _check_go_options(options: str, field: str) -> None:
    """Refuse what would change the connection if it were dropped: above all `tls`."""
    for name, setting in parse_qsl(options, keep_blank_values=True):
        harmless = name.lower() in _GO_ONLY or (name == "tls" and setting in {"false", ""})
        if not harmless:
            raise InvalidInput(
                field, f"the option {name!r} cannot be translated: give the address as database.url instead"
            )


def _redis_url(value: object, field: str) -> str:
    try:
        parts = urlsplit(value) if isinstance(value, str) else None
        usable = parts is not None and parts.scheme in {"redis", "rediss"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable:
        raise InvalidInput(
            field, "not a Redis address: write it as redis://:password@host:6379/0, or rediss:// for TLS"
        )
    return str(value)


def _http_url(value: object, field: str) -> str:
    try:
        parts = urlsplit(value) if isinstance(value, str) else None
        usable = parts is not None and parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        parts, usable = None, False
    if parts is None or not usable or parts.query or parts.fragment or "@" in parts.netloc:
        raise InvalidInput(field, "must be an http:// or https:// address without login, query or fragment")
    return str(value).rstrip("/")


DATABASE_URL = Parser("database address", _database_url)
GO_DSN = Parser("MySQL DSN", _go_dsn)
REDIS_URL = Parser("Redis address", _redis_url)
HTTP_URL = Parser("http address", _http_url)
