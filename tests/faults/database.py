"""The store of a scenario: a server of its own that may be killed, or a file; and what can happen to it."""

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests import prepared
from tests.faults.dump import Reader
from tests.faults.history import Bands
from tests.servers.base import Server
from tests.servers.proxy import Proxy, proxied
from tests.servers.shared import SERVERS

SQLITE = "sqlite"


class Database:
    """One database, prepared and empty."""

    def __init__(self, url: str, server: Server | None, proxy: Proxy | None, through: str, bands: Bands) -> None:
        self.url = url
        """Past the proxy: for whoever judges."""
        self.through = through
        """What instances get."""
        self.reader = Reader(url)
        self._server = server
        self._proxy = proxy
        self._bands = bands

    @property
    def proxy(self) -> Proxy:
        assert self._proxy is not None, "this scenario has no proxy"
        return self._proxy

    @property
    def server(self) -> Server:
        assert self._server is not None, "a file has no server"
        return self._server

    def restart(self, *, crash: bool, seconds: float = 0.0) -> None:
        """Ends it in order or by `kill -9`, leaves it down for so long, and starts it again."""
        kind = "crash" if crash else "restart"
        with self._bands.during("database", kind):
            if crash:
                self.server.kill()
            else:
                self.server.stop()
            time.sleep(seconds)
            self.server.start()


@contextmanager
def database(store: str, folder: Path, bands: Bands, *, with_proxy: bool) -> Iterator[Database]:
    """A new one. MissingError where its programs are not installed."""
    with ExitStack() as stack:
        if store == SQLITE:
            url = f"sqlite:///{folder / 'ksana.db'}"
            prepared.prepare(url)
            yield Database(url, None, None, url, bands)
            return
        server = SERVERS[store](durable=True)
        stack.callback(server.close)
        server.start()
        url = server.create_database()
        prepared.prepare(url)
        if with_proxy:
            through, proxy = stack.enter_context(proxied(url))
            yield Database(url, server, proxy, through, bands)
        else:
            yield Database(url, server, None, url, bands)
